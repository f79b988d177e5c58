"""Messages between processes: one port, an adapter in this process and one on RabbitMQ."""
