//! Custom resource definitions: from a CRD object to served resources and back.

pub(crate) mod validation;
