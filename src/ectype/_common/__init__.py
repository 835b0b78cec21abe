"""What every room may use: checks of arguments, files, numbers in words."""
