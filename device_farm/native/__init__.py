"""Building the C++ of the device farm for phones, virtual phones and this host."""
