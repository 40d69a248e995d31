package pattern

import (
	"strings"
	"sync"
	"unicode"
)

// property returns the code points of \p{name}. The name is a general category, a script or a
// binary property, or "key=value" for the first two. Case, spaces, hyphens and underscores are
// ignored.
func property(name string) (set, bool) {
	key, value, found := strings.Cut(name, "=")
	if !found {
		key, value, found = strings.Cut(name, ":")
	}
	if found {
		value = loose(value)
		switch loose(key) {
		case "generalcategory", "gc", "category":
			s, ok := categories()[value]
			return s, ok
		case "script", "sc":
			return script(value)
		}
		return nil, false
	}
	name = loose(name)
	if s, ok := categories()[name]; ok {
		return s, true
	}
	if s, ok := binaries()[name]; ok {
		return s, true
	}
	return script(name)
}

func loose(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

var categories = sync.OnceValue(func() map[string]set {
	m := map[string]set{}
	for name, t := range unicode.Categories {
		m[loose(name)] = tables(t)
	}
	for alias, name := range unicode.CategoryAliases {
		m[loose(alias)] = m[loose(name)]
	}
	m["any"] = everything
	m["assigned"] = m["cn"].not()
	m["ascii"] = setOf(0, 0x7F)
	return m
})

var scripts = sync.OnceValue(func() map[string]*unicode.RangeTable {
	m := map[string]*unicode.RangeTable{}
	for name, t := range unicode.Scripts {
		m[loose(name)] = t
	}
	for short, long := range scriptCodes {
		m[short] = m[long]
	}
	return m
})

// scriptCodes are the short names of the most common scripts.
var scriptCodes = map[string]string{
	"arab": "arabic", "armn": "armenian", "beng": "bengali", "bopo": "bopomofo", "brai": "braille",
	"cher": "cherokee", "copt": "coptic", "qaac": "coptic", "cyrl": "cyrillic", "deva": "devanagari",
	"ethi": "ethiopic", "geor": "georgian", "goth": "gothic", "grek": "greek", "gujr": "gujarati",
	"guru": "gurmukhi", "hang": "hangul", "hani": "han", "hebr": "hebrew", "hira": "hiragana",
	"kana": "katakana", "khmr": "khmer", "knda": "kannada", "laoo": "lao", "latn": "latin",
	"mlym": "malayalam", "mong": "mongolian", "mymr": "myanmar", "orya": "oriya", "sinh": "sinhala",
	"syrc": "syriac", "taml": "tamil", "telu": "telugu", "thaa": "thaana", "thai": "thai",
	"tibt": "tibetan", "zinh": "inherited", "qaai": "inherited", "zyyy": "common",
}

func script(name string) (set, bool) {
	t, ok := scripts()[name]
	if !ok {
		return nil, false
	}
	return tables(t), true
}

var binaries = sync.OnceValue(func() map[string]set {
	m := map[string]set{}
	for name, t := range unicode.Properties {
		m[loose(name)] = tables(t)
	}
	of := tables
	syntax := of(unicode.Pattern_Syntax, unicode.Pattern_White_Space).not()
	m["alphabetic"] = of(unicode.L, unicode.Nl, unicode.Other_Alphabetic)
	m["lowercase"] = of(unicode.Ll, unicode.Other_Lowercase)
	m["uppercase"] = of(unicode.Lu, unicode.Other_Uppercase)
	m["math"] = of(unicode.Sm, unicode.Other_Math)
	m["idstart"] = of(unicode.L, unicode.Nl, unicode.Other_ID_Start).and(syntax)
	m["idcontinue"] = m["idstart"].union(
		of(unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)).and(syntax)
	for short, long := range map[string]string{
		"alpha": "alphabetic", "lower": "lowercase", "upper": "uppercase", "space": "whitespace",
		"ids": "idstart", "idc": "idcontinue", "hex": "hexdigit", "ahex": "asciihexdigit",
		"dia": "diacritic", "ideo": "ideographic", "ext": "extender", "joinc": "joincontrol",
		"term": "terminalpunctuation", "qmark": "quotationmark", "ri": "regionalindicator",
		"vs": "variationselector", "patsyn": "patternsyntax", "patws": "patternwhitespace",
		"nchar": "noncharactercodepoint", "radical": "radical", "uideo": "unifiedideograph",
		"sterm": "sentenceterminal", "dep": "deprecated", "sd": "softdotted",
	} {
		m[short] = m[long]
	}
	return m
})
