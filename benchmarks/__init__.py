"""Measurements of this package against hand-written code and against published suites."""
