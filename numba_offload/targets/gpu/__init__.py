"""What GPU targets share. Nothing here names a vendor: a target's folder supplies registers, library and machine."""
