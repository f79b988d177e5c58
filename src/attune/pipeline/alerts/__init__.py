"""Alerts: people are told, by events of core.alert, when something in Attune itself needs attention."""
