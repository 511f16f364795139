"""An owner's whole way on sets of real images, by the product's own commands."""
