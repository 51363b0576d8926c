package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

const modelsName = "QUERN_MODELS"

// Model is which language models are asked, and where. Each provider has settings of its own, with its name in theirs.
type Model struct {
	Use       []string        `env:"MODELS" help:"Language models that questions may be answered by: provider/model, separated by commas, the first one is the default. The provider is a name of your choice (lower-case letters, digits and -) whose settings are the QUERN_MODEL_<PROVIDER>_… below; the model is called as the provider calls it. Empty: none."`
	Providers []NamedProvider // of Use, in its order
}

// NamedProvider is a provider with its models.
type NamedProvider struct {
	Provider

	Name   string
	Models []string
}

// Provider is one place where models answer.
type Provider struct {
	Kind        string        `env:"KIND" required:"true" oneof:"openai anthropic" help:"What it speaks. openai: OpenAI and every server that is compatible with it (vLLM, Ollama, llama.cpp, LiteLLM)."`
	URL         URL           `env:"URL" help:"Its API, for example http://127.0.0.1:8000/v1. Empty: the vendor's own."`
	Key         Secret        `env:"KEY" help:"Its API key, if it wants one."`
	Local       bool          `env:"LOCAL" default:"false" help:"It runs where your data may be; it may see rows."`
	Exposure    string        `env:"EXPOSURE" oneof:"schema values rows" help:"What may be sent to a provider that is not local, and required for one. schema: names, types and definitions. values: also values from profiles and from the value index. rows: also rows of results. Owners can lower it for their namespaces."`
	Concurrency int           `env:"CONCURRENCY" default:"8" help:"Calls at once from this process; more wait."`
	Timeout     time.Duration `env:"TIMEOUT" default:"2m" help:"Longest time for one attempt, of which there are up to three."`
	CAFile      string        `env:"CA_FILE" help:"PEM file of certificate authorities for this connection, instead of the system's."`
	Proxy       URL           `env:"PROXY" help:"HTTP proxy for this connection. HTTP_PROXY and its kin are not read."`
}

var providerName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

func providerPrefix(name string) string {
	return "QUERN_MODEL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_"
}

// readProviders reads the settings of every provider that a model of Use names.
func (m *Model) readProviders(lookup func(string) (string, bool)) (problems []error) {
	for _, entry := range m.Use {
		name, model, _ := strings.Cut(entry, "/")
		if model == "" || !providerName.MatchString(name) {
			return []error{errors.New(modelsName + " is not a list of provider/model")}
		}

		at := slices.IndexFunc(m.Providers, func(p NamedProvider) bool { return p.Name == name })
		if at >= 0 {
			m.Providers[at].Models = append(m.Providers[at].Models, model)

			continue
		}

		provider := NamedProvider{Name: name, Models: []string{model}}
		problems = append(problems, provider.read(lookup)...)
		m.Providers = append(m.Providers, provider)
	}

	return problems
}

func (p *NamedProvider) read(lookup func(string) (string, bool)) (problems []error) {
	prefix := providerPrefix(p.Name)

	for _, setting := range settings(reflect.ValueOf(&p.Provider).Elem(), prefix) {
		text, err := setting.text(lookup)
		if err == nil {
			err = setting.set(text)
		}

		if err != nil {
			problems = append(problems, fmt.Errorf("%s %w", setting.name, err))
		}
	}

	switch {
	case len(problems) > 0:
	case !p.Local && p.Exposure == "":
		problems = append(problems, fmt.Errorf("%[1]sEXPOSURE is required, because %[2]s is not local: schema, values or rows, "+
			"for what of people's data may be sent there; or %[1]sLOCAL=true, if it runs where the data may be", prefix, p.Name))
	case p.Local && p.URL == "":
		problems = append(problems, fmt.Errorf("%sURL is required, because %s is local", prefix, p.Name))
	case p.Concurrency == 0:
		problems = append(problems, fmt.Errorf("%sCONCURRENCY must be at least 1", prefix))
	case p.Timeout == 0:
		problems = append(problems, fmt.Errorf("%sTIMEOUT must be longer", prefix))
	}

	return problems
}

// providersOf are the names of the providers in an environment, as far as they can be read.
func (m *Model) providersOf(environ []string) (names []string) {
	lookup := func(name string) (string, bool) {
		for _, entry := range environ {
			if value, found := strings.CutPrefix(entry, name+"="); found {
				return value, true
			}
		}

		return "", false
	}

	for _, setting := range settings(reflect.ValueOf(m).Elem(), "QUERN_") {
		if text, err := setting.text(lookup); err == nil && setting.name == modelsName {
			for _, entry := range split(text) {
				name, _, _ := strings.Cut(entry, "/")
				names = append(names, name)
			}
		}
	}

	return names
}
