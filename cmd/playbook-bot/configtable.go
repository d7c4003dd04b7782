package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/caarlos0/env/v11"
)

// variables lists every variable, in the struct's order.
func variables() []string {
	params, err := env.GetFieldParams(&config{})
	if err != nil {
		// Only a tag that env does not know can bring this about, and the
		// tests would have.
		panic(err)
	}
	var names []string
	for _, p := range params {
		names = append(names, p.Key)
	}
	return names
}

func helpOf(name string) string {
	for f := range reflect.TypeFor[config]().Fields() {
		if f.Tag.Get("env") == name {
			return f.Tag.Get("help")
		}
	}
	return ""
}

// inCell keeps a help text from being read as Markdown.
var inCell = strings.NewReplacer("|", `\|`, "*", `\*`, "_", `\_`)

// configTable is the README's section on configuration, from the struct's
// tags. A NAME_FILE has no row: it is named in NAME's.
func configTable() (string, error) {
	params, err := env.GetFieldParams(&config{})
	if err != nil {
		return "", fmt.Errorf("read the configuration's tags: %w", err)
	}
	tags := make(map[string]reflect.StructTag)
	for f := range reflect.TypeFor[config]().Fields() {
		tags[f.Tag.Get("env")] = f.Tag
	}
	var b strings.Builder
	b.WriteString("| variable | default | what it does |\n|---|---|---|\n")
	for _, p := range params {
		tag := tags[p.Key]
		if tag.Get("help") == "" {
			continue
		}
		name := "`" + p.Key + "`"
		if tag.Get("secret") != "" {
			name += " or `…_FILE`"
		}
		def := "none"
		switch {
		case tag.Get("needed") != "":
			def = "**needed**"
		case tag.Get("forge") != "":
			def = "for " + tag.Get("forge")
		case p.HasDefaultValue:
			def = "`" + p.DefaultValue + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, def, inCell.Replace(tag.Get("help")))
	}
	return b.String(), nil
}
