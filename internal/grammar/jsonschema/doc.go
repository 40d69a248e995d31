// Package jsonschema turns a JSON Schema into rules of a grammar whose language
// is the JSON texts that are valid under it. It reads drafts 4, 6, 7, 2019-09
// and 2020-12.
//
// Every keyword is enforced or refused: a schema that asks for what the rules
// cannot say is an *UnsupportedError with the keyword and its place. Keywords
// and formats that the specification does not know are annotations, as it says;
// one that looks like a misspelling of a known one is an error. A keyword that
// only another draft knows means what it means there, but $ref hides what stands
// beside it up to draft 7. A schema without $schema is of draft 2020-12, in which
// items may be an array and exclusiveMinimum a boolean as they once were.
//
// Refused are: references to other documents; $dynamicRef and $recursiveRef where
// several schemas have the anchor; uniqueItems where items may be arrays or
// objects, beside contains, or under not; the formats regex and idn-hostname;
// multipleOf with more than four digits; and schemas whose alternatives, patterns
// or counts are too many to tell apart.
//
// How a valid value may be written is a matter of Options: white space, the
// order of properties, and whether names and constants have one spelling or all
// that JSON allows. Some spellings are never used, so that an answer ends and
// the rules stay exact: a number has at most 64 digits before the point, 32 after
// it and 3 in an exponent; a whole number that must be one, a multiple of another
// and a constant have no exponent, and one between bounds has one only after a
// single digit or a single digit, point and fraction; a host name has no label
// that begins with "xn--"; a number in a duration has at most 128 digits, and the
// fraction of a second 32. With PlainSpelling a leap second is written in UTC.
//
// # How it works
//
// A literal is a schema or the negation of one; a goal is a conjunction of
// literals, and stands for the values that are all of them. For each goal the
// null, booleans, numbers and strings among its values become regular sets, on
// which "and", "or" and "not" are exact. Arrays and objects become a
// disjunction of alternatives, each a conjunction of plain demands ("has the
// property a", "items from the second on are this goal", "at least two items
// are that literal"), whose parts are goals again. Goals are remembered by their
// literals, so that recursion ends. A least fixed point finds the goals that no
// value satisfies, and the rules avoid them: whatever text a grammar lets
// through can be completed.
package jsonschema
