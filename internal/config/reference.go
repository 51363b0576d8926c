package config

import (
	_ "embed"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

//go:embed reference.md.tmpl
var page string

// Reference returns the content of docs/configuration.md.
func Reference() string {
	var (
		first, contents []string
		tuning          strings.Builder
	)

	for _, group := range groups() {
		first = append(first, rows(group.essential)...)

		if len(group.others) > 0 {
			contents = append(contents, fmt.Sprintf("[%s](#%s)", group.title, anchor(group.title)))
			document, _, _ := strings.Cut(group.about, "#")
			fmt.Fprintf(&tuning, "\n### %s\n\nMore about it: [%s](%s).\n\n%s", group.title, document, group.about, table(rows(group.others)))
		}
	}

	return strings.NewReplacer(
		"{{essential}}\n", table(first),
		"{{tuning}}\n", strings.Join(contents, " ·\n")+"\n"+tuning.String(),
	).Replace(page)
}

// anchor returns the fragment of a heading, as GitHub forms it.
func anchor(heading string) string {
	return strings.NewReplacer(",", "", " ", "-").Replace(strings.ToLower(heading))
}

func table(rows []string) string {
	return "| variable | default | meaning |\n|---|---|---|\n" + strings.Join(rows, "")
}

func rows(list []setting) (rows []string) {
	for _, setting := range list {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", setting.name, setting.preset(), setting.meaning()))
	}

	return rows
}

func (s setting) preset() string {
	switch {
	case s.field.Tag.Get("required") == "true":
		return "**required**"
	case s.field.Tag.Get("default") == "":
		return ""
	default:
		return "`" + s.field.Tag.Get("default") + "`"
	}
}

// asCode matches names of settings and addresses in a help text. As text, Markdown would show <PROVIDER> as nothing and an
// example of an address as a link.
var asCode = regexp.MustCompile(`QUERN_[A-Z0-9_<>…]+|(https?|postgres)://[^\s,]*[^\s,.:]`)

func (s setting) meaning() string {
	tag := s.field.Tag
	help := asCode.ReplaceAllString(tag.Get("help"), "`$0`")

	switch {
	case tag.Get("max") != "":
		return fmt.Sprintf("%s From `%s` to `%s`.", help, tag.Get("min"), tag.Get("max"))
	case tag.Get("oneof") != "":
		return fmt.Sprintf("%s Allowed: `%s`.", help, strings.Join(strings.Fields(tag.Get("oneof")), "`, `"))
	default:
		return help
	}
}

// group is a subject of the page. essential contains the settings that every installation needs: those that are required
// and those with the tag essential.
type group struct {
	title, about      string
	essential, others []setting
}

// groups returns all settings by subject; those of a provider once, for any name.
func groups() (list []group) {
	serve := reflect.ValueOf(&Serve{}).Elem()

	for i := range serve.NumField() {
		tag := serve.Type().Field(i).Tag
		if title := tag.Get("title"); title != "" {
			list = append(list, group{title: title, about: tag.Get("about")})
		}

		last := &list[len(list)-1]

		for _, setting := range settings(serve.Field(i), tag.Get("prefix")) {
			if setting.field.Tag.Get("required") == "true" || setting.field.Tag.Get("essential") == "true" {
				last.essential = append(last.essential, setting)
			} else {
				last.others = append(last.others, setting)
			}

			if setting.name == modelsName {
				last.others = append(last.others, settings(reflect.ValueOf(&Provider{}).Elem(), ProviderPrefix("<provider>"))...)
			}
		}
	}

	return list
}

// documented returns all settings.
func documented() (list []setting) {
	for _, group := range groups() {
		list = append(append(list, group.essential...), group.others...)
	}

	return list
}
