// Package jinja renders Jinja templates: the part of Python's jinja2 3.1 that
// chat templates use, in the setting that Hugging Face transformers gives it.
//
// That setting is an immutable sandbox with trim_blocks and lstrip_blocks on,
// the loop controls break and continue, the generation tag, a tojson filter
// that writes what Python's json.dumps writes, and the functions
// raise_exception and strftime_now. The filter from_json is added. Values
// behave as Python's do: ordered dicts, strings indexed by code point,
// undefined values that print as nothing and fail in arithmetic.
//
// All of jinja2's control flow is here, and the filters, tests and methods
// that chat templates call. Inheritance, percent formatting, and the filters
// for HTML, web addresses and paragraphs are not: what is unknown is an error
// that names it and the nearest that is known. Integers are computed with 64
// bits; wider ones of JSON can be printed and compared. The filter safe
// changes nothing, as nothing escapes HTML.
//
// Every string remembers which of its bytes the template wrote and which came
// from the variables (see Text), through every operator, filter and method. A
// template is untrusted: Limits bounds the steps, the memory, the depth and
// the output of a rendering, so that no template can hang or exhaust the
// process.
//
// Below Parse and Render errors are panics: the parser panics with its
// *SyntaxError and a rendering with any of the errors of this package, and
// Parse and Render return them. The package does not know what a chat is:
// messages, tools and roles are the business of package chat.
package jinja
