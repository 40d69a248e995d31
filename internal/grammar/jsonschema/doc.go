// Package jsonschema turns a JSON Schema into grammar rules whose language is the JSON texts that
// are valid under the schema. It reads drafts 4, 6, 7, 2019-09 and 2020-12.
//
// Every keyword is enforced or refused: if the rules cannot express a constraint, the error is an
// *UnsupportedError with the keyword and its path. Unknown keywords and formats are annotations, as
// the specification says, but one that looks like a misspelling of a known one is an error. A
// keyword that only another draft has means what it means there, but up to draft 7 $ref hides all
// other keywords of its schema. A schema without $schema is read as draft 2020-12, except that items may be
// an array and exclusiveMinimum a boolean as in older drafts.
//
// Compile refuses references to other documents; $dynamicRef and $recursiveRef if several schemas
// have the anchor; uniqueItems if items may be arrays or objects, beside contains, or under not;
// the formats regex and idn-hostname; multipleOf with more than four digits; and schemas with too
// many alternatives, patterns or counts to tell apart.
//
// [Options] say how a valid value may be written: white space, the order of properties, and whether
// names and constants have one spelling or all that JSON allows. The rules exclude some spellings,
// so that an answer ends and the rules stay exact. A number has at most 64 digits before the point,
// 32 after it and 3 in an exponent. A number that must be an integer, a multiple of another or a
// constant has no exponent. A number between bounds has one only after a single nonzero digit
// before the point, with or without a fraction. A host name has no label that begins with "xn--". A
// number in a duration has at most 128 digits, and the fraction of a second 32. With PlainSpelling
// a leap second is written in UTC.
//
// # How it works
//
// A literal is a schema or its negation. A goal is a conjunction of literals and stands for the
// values that satisfy all of them. For each goal, the null, booleans, numbers and strings among its
// values become regular sets, on which "and", "or" and "not" are exact. Arrays and objects become a
// disjunction of alternatives. Each is a conjunction of basic constraints ("has the property a",
// "items from the second on are this goal", "at least two items are that literal") whose parts are
// goals again. Goals are interned by their literals, so that recursion ends. A least fixed point
// finds the goals that no value satisfies, and the rules avoid them: every prefix that a grammar
// accepts can be completed.
package jsonschema
