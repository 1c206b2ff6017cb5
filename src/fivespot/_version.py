"""The version of this distribution, read by the build and by `5spot --version`."""

VERSION = "0.1.0"
