"""Who uses Attune: identities with their passwords, the tokens they carry, and the permission sets they hold."""
