from attune.client import AsyncClient as AsyncClient
from attune.client import Client as Client

__version__: str
