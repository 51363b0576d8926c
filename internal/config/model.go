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

// Model configures the language models and their providers. Each provider has its own settings, whose names contain the
// name of the provider.
type Model struct {
	Use       []string        `env:"MODELS" format:"name" help:"Language models that may answer questions: provider/model, separated by commas. The first one is the default. Choose any name for the provider (lower-case letters, digits and -); its settings are the QUERN_MODEL_<PROVIDER>_… below. Give the model the name that its provider uses. Empty: no model."`
	Providers []NamedProvider // providers of Use, in the same order
}

// NamedProvider is a provider with its models.
type NamedProvider struct {
	Provider

	Name   string
	Models []string
}

// Provider configures one service that runs models.
type Provider struct {
	Kind        string        `env:"KIND" required:"true" oneof:"openai anthropic" help:"API of the provider. openai: OpenAI and compatible servers (vLLM, Ollama, llama.cpp, LiteLLM)."`
	URL         URL           `env:"URL" help:"Address of the API, for example http://127.0.0.1:8000/v1. Empty: the address of the vendor."`
	Key         Secret        `env:"KEY" help:"API key, if the provider requires one."`
	Local       bool          `env:"LOCAL" default:"false" help:"The provider runs on your own infrastructure and may see rows."`
	Exposure    string        `env:"EXPOSURE" oneof:"schema values rows" help:"What may be sent to the provider. Required for a provider that is not local. schema: names, types and definitions. values: also values from profiles and from the value index. rows: also rows of results. Owners can lower it for their namespaces."`
	Concurrency int           `env:"CONCURRENCY" default:"8" min:"1" max:"10000" help:"Calls that this process makes at once. Further calls wait."`
	Timeout     time.Duration `env:"TIMEOUT" default:"2m" min:"1s" max:"24h" help:"Longest duration of one attempt. A request to the provider is tried up to three times."`
	CAFile      string        `env:"CA_FILE" format:"path" help:"PEM file with the certificate authorities of this connection. Empty: those of the system."`
	Proxy       URL           `env:"PROXY" help:"HTTP proxy of this connection. Quern ignores HTTP_PROXY and similar variables."`
}

var providerName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// ProviderPrefix returns the prefix of the names of a provider's settings.
func ProviderPrefix(name string) string {
	return "QUERN_MODEL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_"
}

// readProviders reads the settings of every provider that Use names.
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
	prefix := ProviderPrefix(p.Name)

	problems = fill(settings(reflect.ValueOf(&p.Provider).Elem(), prefix), lookup)

	switch {
	case len(problems) > 0:
	case !p.Local && p.Exposure == "":
		problems = append(problems, fmt.Errorf("%[1]sEXPOSURE is required, because %[2]s is not local: set it to schema, values or rows, "+
			"the most that may be sent there; or set %[1]sLOCAL=true if it runs on your own infrastructure", prefix, p.Name))
	case p.Local && p.URL == "":
		problems = append(problems, fmt.Errorf("%sURL is required, because %s is local", prefix, p.Name))
	}

	return problems
}

// providersOf returns the names of the providers in an environment. It ignores values that cannot be read.
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
