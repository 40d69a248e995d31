// Package jinja renders Jinja templates: the language of Python's jinja2 3.1
// in the setting that Hugging Face transformers gives it for chat templates.
//
// That setting is an immutable sandbox with trim_blocks and lstrip_blocks on,
// the loop controls break and continue, the generation tag, a tojson filter
// that writes what Python's json.dumps writes, and the functions
// raise_exception and strftime_now. Values behave as Python's do: integers of
// any size, ordered dicts, strings indexed by code point, undefined values
// that print as nothing and fail in arithmetic.
//
// Two things differ from the original on purpose. Every string remembers
// which of its bytes the template wrote and which came from the variables
// (see Text), through every operator, filter and method. And a template is
// untrusted: Limits bounds the steps, the memory, the depth and the output of
// a rendering, so that no template can hang or exhaust the process.
//
// The package does not know what a chat is: messages, tools and roles are the
// business of package chat. It loads no other templates, so include, import
// and extends are errors, and it never escapes HTML by itself unless the
// template asks for it with the autoescape tag.
package jinja
