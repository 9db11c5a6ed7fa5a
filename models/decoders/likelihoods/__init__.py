"""Likelihoods beyond the Gaussian, and the decoder that puts them on a network."""

from models.decoders.likelihoods.base import Likelihood, LikelihoodName
from models.decoders.likelihoods.categories import BernoulliLikelihood, CategoricalLikelihood
from models.decoders.likelihoods.counts import NegativeBinomialLikelihood, PoissonLikelihood
from models.decoders.likelihoods.decoder import LikelihoodDecoder
from models.decoders.likelihoods.student_t import StudentTLikelihood

__all__ = [
    "BernoulliLikelihood",
    "CategoricalLikelihood",
    "Likelihood",
    "LikelihoodDecoder",
    "LikelihoodName",
    "NegativeBinomialLikelihood",
    "PoissonLikelihood",
    "StudentTLikelihood",
]
