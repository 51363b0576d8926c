package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Reference returns docs/configuration.md.
func Reference() string {
	var page strings.Builder

	page.WriteString(`# Configuration

Every setting is an environment variable. Each may also be given as ` + "`NAME_FILE`" + `, the path of a file that
holds the value, which is how secrets are best handed over. Start-up names every setting that is missing or
wrong at once. This page is generated: ` + "`make generate`" + `.

| variable | default | meaning |
|---|---|---|
`)

	for _, setting := range documented() {
		tag := setting.field.Tag

		value := "`" + tag.Get("default") + "`"
		if tag.Get("required") == "true" {
			value = "**required**"
		} else if tag.Get("default") == "" {
			value = ""
		}

		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", setting.name, value, tag.Get("help"))
	}

	return page.String()
}

// documented are all settings; those of a provider once, for any name.
func documented() []setting {
	var list []setting

	for _, setting := range settings(reflect.ValueOf(&Serve{}).Elem(), "") {
		list = append(list, setting)

		if setting.name == modelsName {
			list = append(list, settings(reflect.ValueOf(&Provider{}).Elem(), providerPrefix("<provider>"))...)
		}
	}

	return list
}
