package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCommand is `realizar completion`.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help is shown below the command's line.
func (*completionCommand) Help() string {
	return `Examples:

    source <(realizar completion bash)
    realizar completion fish > ~/.config/fish/completions/realizar.fish
    realizar completion zsh > ~/.zfunc/_realizar

zsh reads the script from a folder that is in fpath before compinit runs: fpath+=~/.zfunc in
~/.zshrc.`
}

// Run writes the script.
func (c *completionCommand) Run(a *app) error {
	_, err := io.WriteString(a.out, completion(c.Shell, a.parser.Model.Node))
	return err
}

// completion returns the script that completes app's command line in a shell.
func completion(shell string, app *kong.Node) string {
	switch shell {
	case "bash":
		return bashCompletion(app)
	case "zsh":
		return zshCompletion(app)
	}
	return fishCompletion(app)
}

// A completedFlag describes a flag to a shell.
type completedFlag struct {
	long, short string // with their dashes; short may be empty
	help        string // the first sentence
	takesValue  bool
	file        bool     // the value is a file
	values      []string // its possible values, or nil if they are not a list
}

// completedFlags returns the flags of a command.
func completedFlags(node *kong.Node) []completedFlag {
	var out []completedFlag
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			c := completedFlag{long: "--" + f.Name, help: firstSentence(f.Help), takesValue: !f.IsBool() && !f.IsCounter()}
			if f.Short != 0 {
				c.short = "-" + string(f.Short)
			}
			c.file = strings.Contains(f.PlaceHolder, "FILE") || strings.Contains(f.PlaceHolder, "DIR")
			switch {
			case f.Enum != "":
				c.values = f.EnumSlice()
			case listOfWords.MatchString(f.PlaceHolder):
				c.values = strings.Split(f.PlaceHolder, "|")
			}
			out = append(out, c)
		}
	}
	return out
}

// listOfWords matches a placeholder that lists values: auto|cpu|cuda.
var listOfWords = regexp.MustCompile(`^[a-z0-9]+(\|[a-z0-9]+)+$`)

// wordsOf returns the words that may follow a command's name besides files: the values of an
// argument with a fixed list, the commands for help, and demo for a model.
func wordsOf(node, app *kong.Node) []string {
	var out []string
	for _, p := range node.Positional {
		switch {
		case p.Enum != "":
			out = append(out, p.EnumSlice()...)
		case p.Name == "command":
			for _, c := range app.Children {
				out = append(out, c.Name)
			}
		case p.Name == "model":
			out = append(out, "demo")
		}
	}
	return out
}

// firstSentence returns a help text up to its first full stop, without it.
func firstSentence(help string) string {
	if first, _, found := strings.Cut(help, ". "); found {
		help = first
	}
	return strings.TrimSuffix(help, ".")
}

// nameOf returns a command's name without the program's name.
func nameOf(node *kong.Node) string { return strings.TrimPrefix(node.FullPath(), "realizar ") }

func bashCompletion(app *kong.Node) string {
	var b strings.Builder
	b.WriteString(`# Completion of realizar for bash.
_realizar() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= words= flags= values= i
    COMPREPLY=()
    # --flag=value is three words here.
    if [[ $cur == "=" ]]; then
        cur=
    elif [[ $prev == "=" ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$command ${COMP_WORDS[i]}" in
`)
	for _, c := range app.Children {
		fmt.Fprintf(&b, "            %s) command=%s ;;\n", shellQuote(" "+c.Name), shellQuote(c.Name))
		for _, sub := range c.Children {
			fmt.Fprintf(&b, "            %s) command=%s ;;\n", shellQuote(c.Name+" "+sub.Name), shellQuote(c.Name+" "+sub.Name))
		}
	}
	b.WriteString("        esac\n    done\n    case \"$command\" in\n")
	names := []string{"--help", "--version"}
	for _, c := range app.Children {
		names = append(names, c.Name)
	}
	fmt.Fprintf(&b, "        '') words=%s ;;\n", shellQuote(strings.Join(names, " ")))
	for _, node := range completedCommands(app) {
		var flags []string
		var values strings.Builder
		for _, f := range completedFlags(node) {
			flags = append(flags, f.long)
			pattern := f.long
			if f.short != "" {
				pattern += "|" + f.short
			}
			switch {
			case !f.takesValue:
			case f.values != nil:
				fmt.Fprintf(&values, "                %s) values=%s ;;\n", pattern, shellQuote(strings.Join(f.values, " ")))
			case f.file:
				fmt.Fprintf(&values, "                %s) values=file ;;\n", pattern)
			default:
				fmt.Fprintf(&values, "                %s) return ;;\n", pattern)
			}
		}
		words := wordsOf(node, app)
		for _, sub := range node.Children {
			words = append(words, sub.Name)
		}
		fmt.Fprintf(&b, "        %s)\n            words=%s\n            flags=%s\n", shellQuote(nameOf(node)), shellQuote(strings.Join(words, " ")), shellQuote(strings.Join(flags, " ")))
		fmt.Fprintf(&b, "            case \"$prev\" in\n%s            esac ;;\n", values.String())
	}
	b.WriteString(`    esac
    if [[ $values == file ]]; then
        COMPREPLY=($(compgen -f -- "$cur"))
    elif [[ -n $values ]]; then
        COMPREPLY=($(compgen -W "$values" -- "$cur"))
    elif [[ $cur == -* && -n $command ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    else
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
        [[ -z $command ]] || COMPREPLY+=($(compgen -f -- "$cur"))
    fi
}
complete -o filenames -F _realizar realizar
`)
	return b.String()
}

// completedCommands returns the commands whose flags are completed: those that do something, and
// those that run a default subcommand.
func completedCommands(app *kong.Node) []*kong.Node {
	var out []*kong.Node
	for _, c := range app.Children {
		if c.DefaultCmd != nil {
			n := *c.DefaultCmd
			n.Name, n.Parent, n.Children = c.Name, app, c.Children
			out = append(out, &n)
		}
		if c.Leaf() {
			out = append(out, c)
		} else {
			out = append(out, c.Leaves(true)...)
		}
	}
	return out
}

func zshCompletion(app *kong.Node) string {
	var b strings.Builder
	b.WriteString("#compdef realizar\n# Completion of realizar for zsh.\n_realizar() {\n    local -a commands=(\n")
	for _, c := range app.Children {
		fmt.Fprintf(&b, "        %s\n", shellQuote(c.Name+":"+firstSentence(c.Help)))
	}
	b.WriteString(`    )
    if ((CURRENT == 2)); then
        _describe command commands
        _arguments '--help[Show help]' '--version[Say which version this is]'
        return
    fi
    local command=$words[2]
`)
	for _, c := range app.Children {
		if len(c.Children) == 0 {
			continue
		}
		var names []string
		for _, sub := range c.Children {
			names = append(names, sub.Name)
		}
		fmt.Fprintf(&b, `    if [[ $command == %s && $words[3] == (%s) ]] && ((CURRENT > 3)); then
        command+=" $words[3]"
        shift words
        ((CURRENT--))
    fi
`, c.Name, strings.Join(names, "|"))
	}
	b.WriteString("    shift words\n    ((CURRENT--))\n    case $command in\n")
	for _, node := range completedCommands(app) {
		fmt.Fprintf(&b, "        %s)\n            _arguments -s", shellQuote(nameOf(node)))
		for _, f := range completedFlags(node) {
			end := "[" + zshEscape(f.help) + "]"
			names := []string{f.long}
			if f.short != "" {
				names = append(names, f.short)
			}
			for _, name := range names {
				spec := name
				if f.takesValue && strings.HasPrefix(name, "--") {
					spec += "="
				}
				switch spec += end; {
				case !f.takesValue:
				case f.values != nil:
					spec += ":value:(" + strings.Join(f.values, " ") + ")"
				case f.file:
					spec += ":file:_files"
				default:
					spec += ":value:"
				}
				b.WriteString(" \\\n                " + shellQuote(spec))
			}
		}
		words := wordsOf(node, app)
		for _, sub := range node.Children {
			words = append(words, sub.Name)
		}
		b.WriteString(" \\\n                " + shellQuote("*:argument:{ compadd -- "+strings.Join(words, " ")+"; _files }"))
		b.WriteString(" ;;\n")
	}
	b.WriteString("    esac\n}\n_realizar \"$@\"\n")
	return b.String()
}

// zshEscape escapes the characters that end a description in zsh.
func zshEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

func fishCompletion(app *kong.Node) string {
	var b strings.Builder
	b.WriteString(`# Completion of realizar for fish.
function __realizar_is --description 'Whether the command line begins with these words'
    set -l words (commandline -opc)[2..]
    set -l n (count $argv)
    test (count $words) -ge $n; or return 1
    test "$words[1..$n]" = "$argv"
end
function __realizar_begins
    test (count (commandline -opc)) -eq 1
end
complete -c realizar -n __realizar_begins -f
complete -c realizar -n __realizar_begins -l help -s h -d 'Show help'
complete -c realizar -n __realizar_begins -l version -s V -d 'Say which version this is'
`)
	for _, c := range app.Children {
		fmt.Fprintf(&b, "complete -c realizar -n __realizar_begins -a %s -d %s\n", c.Name, fishQuote(firstSentence(c.Help)))
	}
	for _, node := range completedCommands(app) {
		condition := "__realizar_is " + nameOf(node)
		for _, sub := range node.Children {
			fmt.Fprintf(&b, "complete -c realizar -n %s -a %s -d %s\n", fishQuote(condition), sub.Name, fishQuote(firstSentence(sub.Help)))
			condition += "; and not __realizar_is " + nameOf(sub)
		}
		when := fishQuote(condition)
		if words := wordsOf(node, app); len(words) > 0 {
			fmt.Fprintf(&b, "complete -c realizar -n %s -a %s\n", when, fishQuote(strings.Join(words, " ")))
		}
		for _, f := range completedFlags(node) {
			fmt.Fprintf(&b, "complete -c realizar -n %s", when)
			b.WriteString(" -l " + strings.TrimPrefix(f.long, "--"))
			if f.short != "" {
				b.WriteString(" -s " + strings.TrimPrefix(f.short, "-"))
			}
			switch {
			case !f.takesValue:
			case f.values != nil:
				b.WriteString(" -x -a " + fishQuote(strings.Join(f.values, " ")))
			case f.file:
				b.WriteString(" -r -F")
			default:
				b.WriteString(" -x")
			}
			b.WriteString(" -d " + fishQuote(f.help) + "\n")
		}
	}
	return b.String()
}

// shellQuote quotes a text for bash and zsh.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// fishQuote quotes a text for fish.
func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
