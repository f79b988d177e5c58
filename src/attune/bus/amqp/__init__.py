"""The parts of the RabbitMQ adapter: what knows AMQP and the driver, and nothing else does."""
