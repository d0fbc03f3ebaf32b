"""The channels of a network file. Their errors name the file and the line."""

from __future__ import annotations

from braid.channels.channels import Channels
from braid.channels.kinds import open_channels
from braid.errors import BraidError
from braid.files.network import NetworkFile


def channels_of_file(file: NetworkFile) -> Channels:
    """The channels of a network file, opened; `FileError` with file and line if what it says of them is wrong."""
    try:
        return open_channels(file.channels, file.directory)
    except BraidError as error:
        if file.channels_location is None:
            raise
        raise file.channels_location.error(str(error)) from error
