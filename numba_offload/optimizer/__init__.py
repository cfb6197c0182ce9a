"""@optimize_transfers: host functions whose arrays stay on the device between launches, until the host uses them."""
