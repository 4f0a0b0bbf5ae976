//! Prompt to reply, whatever the provider.
