from hypothesis import HealthCheck, settings

pytest_plugins = ["harness.fixtures"]

# How long it takes to draw an example says more of the machine than of the test.
settings.register_profile("attune", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("attune")
