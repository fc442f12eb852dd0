"""Operations NNAPI does not have, written as those it has, one file a family."""
