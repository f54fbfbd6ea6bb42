"""What is printed and false, as printed, so that it can be tried."""
