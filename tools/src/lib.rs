//! What an agent can do to its workspace.
