"""A model that MLflow saved is checked before it is loaded; a hostile one in its place is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests import samples

import pt2kit
from pt2kit.errors import UnsupportedError

mlflow = pytest.importorskip("mlflow", reason="MLflow is tried in an environment of its own: pip install mlflow")
torch = pytest.importorskip("torch", reason="MLflow's pytorch flavor needs torch")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(280)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that MLflow's own flavor saved as a program."""
    folder = tmp_path_factory.mktemp("mlflow") / "model"
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
    example = torch.randn(3, 4).numpy()
    mlflow.pytorch.save_model(module, folder, input_example=example, serialization_format="pt2")
    return Path(folder)


def test_a_saved_model_is_checked_and_loaded(saved: Path) -> None:
    """The same numbers as MLflow's own loader gives."""
    from pt2kit.integrations.mlflow import check_model, load_model

    [(path, report)] = check_model(str(saved)).items()
    assert path == "data/model.pt2"
    assert report.ok
    x = torch.randn(3, 4)
    torch.testing.assert_close(load_model(str(saved))(x), mlflow.pytorch.load_model(str(saved))(x))


def test_pyfunc_loads_by_this_module(saved: Path, tmp_path: Path) -> None:
    """A model that names the module as its loader goes the same way, by MLflow's own `pyfunc.load_model`."""
    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    description = mlflow.models.Model.load(str(folder))
    description.flavors["python_function"]["loader_module"] = "pt2kit.integrations.mlflow"
    description.save(str(folder / "MLmodel"))
    x = torch.randn(3, 4)
    found = mlflow.pyfunc.load_model(str(folder)).predict(x.numpy())
    torch.testing.assert_close(torch.as_tensor(found), pt2kit.load(folder / "data" / "model.pt2").module()(x).detach())


@pytest.mark.parametrize("name", ["000_pickle_sample_inputs", "015_eval_expr_os_exit"])
def test_a_hostile_model_is_refused(saved: Path, tmp_path: Path, name: str) -> None:
    """Before anything of it is loaded, with what it would run."""
    from pt2kit.integrations.mlflow import check_model, load_model

    folder = Path(shutil.copytree(saved, tmp_path / "model"))
    shutil.copy(samples.DATA / "hostile" / f"{name}.pt2", folder / "data" / "model.pt2")
    with pytest.raises(UnsupportedError, match=r"expected a model that a check finds sound, got 1 errors: .*\[X[15]\]"):
        load_model(str(folder))
    assert not check_model(str(folder))["data/model.pt2"].ok
