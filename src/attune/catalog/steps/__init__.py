"""What users do to single definitions over the API: create by hand, change, remove, switch on and off."""
