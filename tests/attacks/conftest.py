import pytest

import lograb


@pytest.fixture(params=["d-hop 1", "d-hop 2", "random"])
def noisy(request):
    strategy, _, d = request.param.partition(" ")
    instance = lograb.generate("karate", strategy=strategy, d=int(d or 1), p=0.8, k=5, sigma=0.1)
    return instance.observe(features=False)
