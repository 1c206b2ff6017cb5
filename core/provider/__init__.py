"""The provider's side of the contract: from a schedule to the status that machines read."""
