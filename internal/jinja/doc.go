// Package jinja renders Jinja templates: the part of Python's jinja2 3.1 that chat templates use,
// in the environment of Hugging Face transformers.
//
// That environment is an immutable sandbox with trim_blocks and lstrip_blocks on, the loop controls
// break and continue, the generation tag, a tojson filter with the output of Python's json.dumps,
// and the functions raise_exception and strftime_now. The package adds the filter from_json. Values
// behave as in Python: ordered dicts, strings indexed by code point, undefined values that print as
// nothing and fail in arithmetic.
//
// All of jinja2's control flow is supported, with the filters, tests and methods that chat
// templates call. Inheritance, percent formatting, and the filters for HTML, web addresses and
// paragraphs are not supported: an unknown name is an error that shows the nearest known name.
// Integer arithmetic has 64 bits; larger integers in JSON can be printed and compared. The filter
// safe has no effect, since nothing escapes HTML.
//
// Every string records which of its bytes come from the template and which from the variables (see
// Text), through every operator, filter and method. A template is untrusted: Limits bounds the
// steps, the memory, the depth and the output of a rendering, so that no template can hang or
// exhaust the process.
//
// Below Parse and Render, errors are panics: the parser panics with its *SyntaxError, and rendering
// with any of the errors of this package. Parse and Render return them. Messages, tools and roles
// are handled by package chat.
package jinja
