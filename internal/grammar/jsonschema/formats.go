package jsonschema

import (
	"fmt"
	"strings"
)

// format returns the texts of a format. Formats that the specification does not list are
// annotations.
func (c *compiler) format(name, path string) (stringSet, error) {
	if reason, ok := refusedFormats[name]; ok {
		return noString, &UnsupportedError{"format", path, fmt.Sprintf("%q: %s", name, reason)}
	}
	if set, ok := c.formats[name]; ok {
		return set, nil
	}
	make, ok := formatPatterns[name]
	if !ok {
		for known := range formatPatterns {
			if strings.EqualFold(fold(known), fold(name)) {
				return noString, &UnsupportedError{"format", path, fmt.Sprintf("%q is no format, and looks like %s", clip(name), known)}
			}
		}
		return anyString, nil
	}
	text := make()
	if !c.strings.plain && name == "time" {
		text = "(?:" + text + "|" + leapPattern() + ")"
	} else if !c.strings.plain && name == "date-time" {
		text = "(?:" + text + "|" + datePattern + "[tT]" + leapPattern() + ")"
	}
	set, err := c.pattern("^(?:"+text+")$", path)
	if err != nil {
		return set, err
	}
	c.formats[name] = set
	return set, nil
}

// refusedFormats are the known formats that are refused, with the reasons.
var refusedFormats = map[string]string{
	"regex":        "which texts are regular expressions cannot be said by rules",
	"idn-hostname": "its letters depend on tables of Unicode; write hostname, or a pattern",
}

// oldHost is the hostname of drafts 4 and 6, whose labels may have dashes anywhere inside. No
// schema names it: its name ends in a NUL, which no format's name has.
const (
	oldHost  = "hostname\x00"
	oldLabel = `[A-Za-z\d](?:[A-Za-z\d\-]{0,61}[A-Za-z\d])?`
)

// formatPatterns are ECMA-262 regular expressions for whole texts.
var formatPatterns = map[string]func() string{
	"date":                  func() string { return datePattern },
	"time":                  func() string { return timePattern },
	"date-time":             func() string { return datePattern + "[tT]" + timePattern },
	"duration":              durationPattern,
	"email":                 func() string { return emailPattern("") },
	"idn-email":             func() string { return emailPattern(`\u{80}-\u{10FFFF}`) },
	"hostname":              func() string { return `(?=.{1,253}$)` + hostPattern },
	oldHost:                 func() string { return `(?=.{1,253}$)` + oldLabel + `(?:\.` + oldLabel + `)*` },
	"ipv4":                  func() string { return ipv4Pattern },
	"ipv6":                  ipv6Pattern,
	"uuid":                  func() string { return `[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12}` },
	"uri":                   func() string { return resourcePattern("", "", false) },
	"uri-reference":         func() string { return resourcePattern("", "", true) },
	"iri":                   func() string { return resourcePattern(letters, private, false) },
	"iri-reference":         func() string { return resourcePattern(letters, private, true) },
	"uri-template":          templatePattern,
	"json-pointer":          func() string { return pointerPattern },
	"relative-json-pointer": func() string { return `(?:0|[1-9]\d*)(?:#|` + pointerPattern + `)` },
}

const (
	datePattern = `(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))` +
		`|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	// RFC 3339's full-time, with leap seconds in UTC only.
	timePattern    = `(?:` + minutes + `:[0-5]\d` + secondFraction + `(?:[zZ]|[+\-]` + minutes + `)|23:59:60` + secondFraction + `[zZ])`
	minutes        = `(?:[01]\d|2[0-3]):[0-5]\d`
	secondFraction = `(?:\.\d{1,32})?`
	pointerPattern = `(?:/(?:[^~/]|~[01])*)*`
	// A label of letters, digits and dashes. Labels with dashes in the third and fourth position
	// are reserved; after "xn" they encode non-ASCII letters.
	labelPattern = `[A-Za-z\d](?:[A-Za-z\d]?|[A-Za-z\d\-](?:[A-Za-z\d]|[A-Za-z\d]{2}|-[A-Za-z\d]` +
		`|(?:[A-Za-z\d][A-Za-z\d\-]|-[A-Za-z\d])[A-Za-z\d\-]{0,58}[A-Za-z\d]))`
	hostPattern = labelPattern + `(?:\.` + labelPattern + `)*`
	ipv4Pattern = octet + `(?:\.` + octet + `){3}`
	octet       = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
)

// leapPattern returns the times of leap seconds with an offset. A leap second is the last of a day
// in UTC, so the pattern ties the time to the offset, for each minute of a day.
func leapPattern() string {
	var whole, east, eastMinutes, west, westMinutes []string
	tail := `:60` + secondFraction
	for h := range 24 {
		whole = append(whole, fmt.Sprintf(`%02d:59%s\+%02d:00`, (23+h)%24, tail, h))
		east = append(east, fmt.Sprintf(`%02d:\d\d%s\+%02d:\d\d`, h, tail, h))
		west = append(west, fmt.Sprintf(`%02d:\d\d%s-%02d:\d\d`, 23-h, tail, h))
	}
	for m := range 60 {
		if m > 0 {
			eastMinutes = append(eastMinutes, fmt.Sprintf(`\d\d:%02d%s\+\d\d:%02d`, m-1, tail, m))
		}
		westMinutes = append(westMinutes, fmt.Sprintf(`\d\d:%02d%s-\d\d:%02d`, 59-m, tail, m))
	}
	or := func(list []string) string { return "(?:" + strings.Join(list, "|") + ")" }
	return "(?:" + or(whole) + "|(?=" + or(east) + "$)" + or(eastMinutes) + "|(?=" + or(west) + "$)" + or(westMinutes) + ")"
}

// durationPattern returns RFC 3339's duration.
func durationPattern() string {
	const n = `\d{1,128}`
	time := `T(?:` + n + `H(?:` + n + `M(?:` + n + `S)?)?|` + n + `M(?:` + n + `S)?|` + n + `S)`
	date := `(?:` + n + `D|` + n + `M(?:` + n + `D)?|` + n + `Y(?:` + n + `M(?:` + n + `D)?)?)`
	return `P(?:` + date + `(?:` + time + `)?|` + time + `|` + n + `W)`
}

// emailPattern returns RFC 5321's mailbox. more are additional characters beyond ASCII.
func emailPattern(more string) string {
	atom := `[A-Za-z\d!#$%&'*+\-/=?^_` + "`" + `{|}~` + more + `]+`
	local := `(?:` + atom + `(?:\.` + atom + `)*|"(?:[ !#-\[\]-~` + more + `]|\\[ -~])*")`
	domain := hostPattern
	if more != "" {
		label := `[A-Za-z\d` + more + `](?:[A-Za-z\d\-` + more + `]*[A-Za-z\d` + more + `])?`
		domain = label + `(?:\.` + label + `)*`
	}
	return `(?=[^]{1,254}$)` + local + `@(?:` + domain + `|\[` + ipv4Pattern + `\]|\[IPv6:` + ipv6Pattern() + `\])`
}

// ipv6Pattern returns RFC 4291's text form of an address.
func ipv6Pattern() string {
	const group = `[\da-fA-F]{1,4}`
	last := `(?:` + group + `:` + group + `|` + ipv4Pattern + `)`
	all := []string{`(?:` + group + `:){6}` + last}
	for before := range 8 {
		// before groups, "::", and as many of the remaining groups as leave at least one out.
		left := ""
		if before > 0 {
			left = fmt.Sprintf(`%s(?::%s){%d}`, group, group, before-1)
		}
		after := 7 - before
		switch {
		case after >= 2:
			all = append(all, fmt.Sprintf(`%s::(?:(?:%s:){0,%d}%s|%s)?`, left, group, after-2, last, group))
		case after == 1:
			all = append(all, left+`::(?:`+group+`)?`)
		default:
			all = append(all, left+`::`)
		}
	}
	return `(?:` + strings.Join(all, "|") + `)`
}

const (
	letters = `\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}\u{10000}-\u{1FFFD}\u{20000}-\u{2FFFD}\u{30000}-\u{3FFFD}` +
		`\u{40000}-\u{4FFFD}\u{50000}-\u{5FFFD}\u{60000}-\u{6FFFD}\u{70000}-\u{7FFFD}\u{80000}-\u{8FFFD}\u{90000}-\u{9FFFD}` +
		`\u{A0000}-\u{AFFFD}\u{B0000}-\u{BFFFD}\u{C0000}-\u{CFFFD}\u{D0000}-\u{DFFFD}\u{E1000}-\u{EFFFD}`
	private = `\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}`
	percent = `%[\da-fA-F]{2}`
)

// resourcePattern returns RFC 3986's URI, or RFC 3987's IRI given its letters and private
// characters. If relative is set, it includes relative references.
func resourcePattern(letters, private string, relative bool) string {
	common := `A-Za-z\d\-._~!$&'()*+,;=` + letters
	chars := func(more string) string { return `(?:[` + common + more + `]|` + percent + `)` }
	path := `(?:/` + chars(":@") + `*)*`
	address := `\[(?:` + ipv6Pattern() + `|[vV][\da-fA-F]+\.[A-Za-z\d\-._~!$&'()*+,;=:]+)\]`
	authority := `//(?:` + chars(":") + `*@)?(?:` + address + `|` + chars("") + `*)(?::\d*)?` + path
	absolute := `/(?:` + chars(":@") + `+` + path + `)?`
	tail := `(?:\?` + chars(":@/?"+private) + `*)?(?:#` + chars(":@/?") + `*)?`
	whole := `[A-Za-z][A-Za-z\d+\-.]*:(?:` + authority + `|` + absolute + `|` + chars(":@") + `+` + path + `)?`
	if relative {
		whole = `(?:` + whole + `|(?:` + authority + `|` + absolute + `|` + chars("@") + `+` + path + `)?)`
	}
	return whole + tail
}

// templatePattern returns RFC 6570's URI template.
func templatePattern() string {
	literal := `(?:[!#$&'-;=?-\[\]_a-z~` + letters + private + `]|` + percent + `)`
	char := `(?:[A-Za-z\d_]|` + percent + `)`
	variable := char + `(?:\.?` + char + `)*(?::[1-9]\d{0,3}|\*)?`
	return `(?:` + literal + `|\{[+#./;?&=,!@|]?` + variable + `(?:,` + variable + `)*\})*`
}
