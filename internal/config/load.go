package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

// Read fills a T from the environment. Its error names every setting that is missing or wrong, so that the operator can
// correct them all at once. The error never contains a value.
func Read[T any](lookup func(string) (string, bool)) (T, error) {
	var config T

	problems := fill(settings(reflect.ValueOf(&config).Elem(), ""), lookup)

	if serve, ok := any(&config).(*Serve); ok {
		problems = append(problems, serve.Model.readProviders(lookup)...)
	}

	return config, errors.Join(problems...)
}

// fill reads the settings. Every problem begins with the name of its setting.
func fill(list []setting, lookup func(string) (string, bool)) (problems []error) {
	for _, setting := range list {
		text, err := setting.text(lookup)
		if err == nil {
			err = setting.set(text)
		}

		if err != nil {
			problems = append(problems, fmt.Errorf("%s %w", setting.name, err))
		}
	}

	return problems
}

// Unknown returns the variables that begin with QUERN_ and are not settings, most likely because they are misspelt.
func Unknown(environ []string) (unknown []string) {
	known := names(environ)

	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		foreign := !strings.HasPrefix(name, "QUERN_") || slices.Contains([]string{"QUERN_SERVER", "QUERN_TOKEN", "QUERN_NAMESPACE", "QUERN_HOME"}, name) ||
			slices.ContainsFunc([]string{"QUERN_TEST_", "QUERN_STACK_", "QUERN_TOOLS_", "QUERN_DOCTOR_", "QUERN_CONNECTION_SECRET_"},
				func(prefix string) bool { return strings.HasPrefix(name, prefix) })

		if !foreign && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}

	slices.Sort(unknown)

	return unknown
}

// Nearest returns the setting whose name is most similar to that of an unknown one, and empty if none is similar.
func Nearest(unknown string, environ []string) string {
	if similar := lexicon.Nearest(unknown, names(environ)); len(similar) > 0 {
		return similar[0]
	}

	return ""
}

// names returns the names of all settings, with those of the providers of models in the environment.
func names(environ []string) (known []string) {
	var serve Serve

	all := settings(reflect.ValueOf(&serve).Elem(), "")
	for _, provider := range serve.Model.providersOf(environ) {
		all = append(all, settings(reflect.ValueOf(&Provider{}).Elem(), ProviderPrefix(provider))...)
	}

	for _, setting := range all {
		known = append(known, setting.name, setting.name+"_FILE")
	}

	return known
}

type setting struct {
	name  string
	field reflect.StructField
	value reflect.Value
}

// settings returns the settings in a struct and its nested structs, in the order of the fields.
func settings(v reflect.Value, prefix string) []setting {
	var list []setting

	for i := range v.NumField() {
		field := v.Type().Field(i)
		if name, ok := field.Tag.Lookup("env"); ok {
			list = append(list, setting{name: prefix + name, field: field, value: v.Field(i)})
		} else if field.Type.Kind() == reflect.Struct {
			list = append(list, settings(v.Field(i), prefix+field.Tag.Get("prefix"))...)
		}
	}

	return list
}

func (s setting) text(lookup func(string) (string, bool)) (string, error) {
	text, given := lookup(s.name)
	path, fromFile := lookup(s.name + "_FILE")

	// Files of settings and templates use an empty value for "not set".
	given, fromFile = given && text != "", fromFile && path != ""

	switch {
	case given && fromFile:
		return "", errors.New("is set twice: directly and as _FILE")
	case fromFile:
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("cannot be read from its file: %w", err)
		}

		text = strings.TrimRight(string(content), "\r\n")
	case !given:
		text = ""
	}

	if text == "" {
		text = s.field.Tag.Get("default")
	}

	if text == "" && s.field.Tag.Get("required") == "true" {
		return "", errors.New("is required")
	}

	return text, nil
}

func (s setting) set(text string) error {
	if text == "" {
		return nil
	}

	if least, _ := strconv.Atoi(s.field.Tag.Get("minlen")); utf8.RuneCountInString(text) < least {
		return fmt.Errorf("must have at least %d characters", least)
	}

	parsed, err := parse(s.value.Interface(), text)
	if err == nil {
		err = s.bounded(text, parsed)
	}

	if err != nil {
		return err
	}

	s.value.Set(reflect.ValueOf(parsed))

	return nil
}

// parse parses text as the type of sample.
func parse(sample any, text string) (any, error) {
	switch sample.(type) {
	case string:
		return text, nil
	case Secret:
		return NewSecret(text), nil
	case URL:
		return parseURL(text)
	case Origin:
		return parseOrigin(text)
	case Bytes:
		return ParseBytes(text)
	case bool:
		return number(strconv.ParseBool(text))("must be true or false")
	case int:
		n, err := strconv.Atoi(text)

		return number(n, errors.Join(err, negative(n < 0)))("is not a whole number of at least 0")
	case float64:
		f, err := strconv.ParseFloat(text, 64)

		return number(f, errors.Join(err, negative(f < 0)))("is not a number of at least 0")
	case time.Duration:
		d, err := time.ParseDuration(text)

		return number(d, errors.Join(err, negative(d < 0)))("is not a duration such as 30s or 5m")
	case []string:
		return split(text), nil
	case []netip.Prefix:
		var prefixes []netip.Prefix

		for _, part := range split(text) {
			prefix, err := netip.ParsePrefix(part)
			if err != nil {
				return nil, errors.New("is not a list of networks such as 10.0.0.0/8")
			}

			prefixes = append(prefixes, prefix)
		}

		return prefixes, nil
	default:
		return nil, fmt.Errorf("has a type that the loader does not support: %T", sample)
	}
}

// number replaces the error of a parser, which would repeat the value, by a message without it.
func number[T any](value T, err error) func(message string) (any, error) {
	return func(message string) (any, error) {
		if err != nil {
			return nil, errors.New(message)
		}

		return value, nil
	}
}

func negative(is bool) error {
	if is {
		return errors.New("negative")
	}

	return nil
}

func split(text string) []string {
	var parts []string

	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}

	return parts
}
