"""ZMTP for the peers on this machine, who need no key: what libzmq would do, without what ends libzmq."""
