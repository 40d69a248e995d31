package lark

// common are the terminals of %import common, as regular expressions with the flag s.
var common = map[string]string{
	"DIGIT":          `[0-9]`,
	"HEXDIGIT":       `[0-9A-Fa-f]`,
	"INT":            `[0-9]+`,
	"SIGNED_INT":     `[+-]?[0-9]+`,
	"DECIMAL":        `[0-9]+\.[0-9]*|\.[0-9]+`,
	"_EXP":           `[eE][+-]?[0-9]+`,
	"FLOAT":          float,
	"SIGNED_FLOAT":   `[+-]?(?:` + float + `)`,
	"NUMBER":         `[0-9]+|` + float,
	"SIGNED_NUMBER":  `[+-]?(?:[0-9]+|` + float + `)`,
	"ESCAPED_STRING": `"(?:[^"\\\n]|\\[^\n])*"`,
	"LCASE_LETTER":   `[a-z]`,
	"UCASE_LETTER":   `[A-Z]`,
	"LETTER":         `[A-Za-z]`,
	"WORD":           `[A-Za-z]+`,
	"CNAME":          `[A-Za-z_][0-9A-Za-z_]*`,
	"WS_INLINE":      `[ \t]+`,
	"WS":             `[ \t\f\r\n]+`,
	"CR":             `\r`,
	"LF":             `\n`,
	"NEWLINE":        `(?:\r?\n)+`,
	"SH_COMMENT":     `#[^\n]*`,
	"CPP_COMMENT":    `//[^\n]*`,
	"C_COMMENT":      `/\*(?:[^*]|\*+[^*/])*\*+/`,
	"SQL_COMMENT":    `--[^\n]*`,
}

const float = `[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?`
