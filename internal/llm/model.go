package llm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Exposure is how much of the data a model may see. A higher exposure includes the lower ones.
type Exposure int

const (
	ExposeSchema Exposure = iota + 1 // names, types and definitions
	ExposeValues                     // also values of profiles and of the value index
	ExposeRows                       // also rows of results
)

// ParseExposure parses schema, values or rows.
func ParseExposure(text string) (Exposure, error) {
	if i := slices.Index([]string{"schema", "values", "rows"}, text); i >= 0 {
		return ExposeSchema + Exposure(i), nil
	}

	return 0, errors.New("an exposure must be one of: schema, values, rows")
}

func (e Exposure) String() string { return []string{"", "schema", "values", "rows"}[e] }

// Kind is the API that a provider implements.
type Kind string

const (
	OpenAI    Kind = "openai"
	Anthropic Kind = "anthropic"
)

// Provider is a service that runs models.
type Provider struct {
	Name        string
	Kind        Kind
	URL         string // address of the API; empty means the vendor's own
	Key         string
	Local       bool          // it runs where the data may be
	Exposure    Exposure      // ignored if the provider is local
	Models      []string      // names that callers may choose
	Concurrency int           // concurrent calls from this process; further calls wait
	Timeout     time.Duration // longest duration of one attempt
	Client      *http.Client  // its timeout is ignored
}

// Config is the configuration of Models.
type Config struct {
	DB        *postgres.DB
	Providers []Provider // the first model of the first provider is the default
	// Settle adds tokens to the account's usage.
	Settle func(ctx context.Context, tx postgres.Tx, account uuid.UUID, tokens int64) error
	// Admit fails if an account may not make another call. Nil means that every call is allowed.
	Admit func(ctx context.Context, tx postgres.Tx, account uuid.UUID) error
	// Observe is called after each attempt at a call, with the time since it began. nil means that nobody observes.
	Observe func(model string, answered bool, used Usage, took time.Duration)
	Capture bool // record prompts and answers in spans
	Log     *slog.Logger
	Now     func() time.Time
}

// Models is the set of models that the operator configured.
type Models struct {
	config    Config
	providers []*provider
}

// provider is a Provider in use. Its Key is empty: only the client of the wire has the key.
type provider struct {
	Provider

	wire    wire
	slots   chan struct{}
	breaker breaker
}

// wire implements the API of one kind of provider.
type wire interface {
	// send makes one attempt, streamed if tell is not nil. With an error it also returns what arrived before the error.
	send(ctx context.Context, request Request, tell func(text string) error) (Response, error)
}

// Model is a configured model.
type Model struct {
	Name     string
	Provider string
	Local    bool
	Exposure Exposure // ExposeRows if the model is local
}

// Allowed returns how much of a dataset the model may see: what the operator allows for it, or less if the owner of the dataset set less: schema,
// values, rows, or nothing. A local model may see everything.
func (m Model) Allowed(set string) Exposure {
	if m.Local {
		return ExposeRows
	}

	if exposure, err := ParseExposure(set); err == nil {
		return min(m.Exposure, exposure)
	}

	return m.Exposure
}

// New returns Models. It does not contact the providers.
func New(c Config) (*Models, error) {
	m := &Models{config: c}

	for _, given := range c.Providers {
		if given.Local {
			given.Exposure = ExposeRows
		}

		switch {
		case given.Name == "" || len(given.Models) == 0:
			return nil, errors.New("a provider needs a name and a model")
		case given.Exposure < ExposeSchema || given.Exposure > ExposeRows:
			return nil, fmt.Errorf("%s: a provider that is not local needs an exposure", given.Name)
		case given.Concurrency <= 0 || given.Timeout <= 0 || given.Client == nil:
			return nil, fmt.Errorf("%s: a client, a timeout and a number of concurrent calls are required", given.Name)
		}

		p := &provider{Provider: given, slots: make(chan struct{}, given.Concurrency)}

		switch given.Kind {
		case OpenAI:
			p.wire = newOpenAI(given)
		case Anthropic:
			p.wire = newAnthropic(given)
		default:
			return nil, fmt.Errorf("%s: the kind must be openai or anthropic", given.Name)
		}

		p.Key = ""
		m.providers = append(m.providers, p)
	}

	m.config.Providers = nil

	return m, nil
}

// Configured reports whether at least one model is configured.
func (m *Models) Configured() bool { return len(m.providers) > 0 }

// Choose returns a model by its name, its provider, or both. If both are empty it returns the default.
//
// Faults: ValidationFailed if the model or provider does not exist, Unavailable if no model is configured.
func (m *Models) Choose(model, from string) (Model, error) {
	switch {
	case !m.Configured() && (model != "" || from != ""):
		return Model{}, fault.Invalid("model", "no model is configured on this server; leave out model and provider")
	case !m.Configured():
		return Model{}, fault.New(fault.Unavailable, "No model is configured. Ask the operator to set QUERN_MODELS.")
	}

	known := false

	for _, p := range m.providers {
		if from != "" && from != p.Name {
			continue
		}

		known = true

		if model == "" {
			return p.model(p.Models[0]), nil
		}

		if slices.Contains(p.Models, model) {
			return p.model(model), nil
		}
	}

	if !known {
		return Model{}, fault.Invalid("provider", "must be one of: "+strings.Join(m.names(func(p *provider) []string { return []string{p.Name} }), ", "))
	}

	return Model{}, fault.Invalid("model", "must be one of: "+strings.Join(m.names(func(p *provider) []string {
		if from != "" && from != p.Name {
			return nil
		}

		return p.Models
	}), ", "))
}

// All returns all models. The first one is the default.
func (m *Models) All() (all []Model) {
	for _, p := range m.providers {
		for _, name := range p.Models {
			all = append(all, p.model(name))
		}
	}

	return all
}

func (m *Models) names(of func(*provider) []string) (names []string) {
	for _, p := range m.providers {
		names = append(names, of(p)...)
	}

	return names
}

func (p *provider) model(name string) Model {
	return Model{Name: name, Provider: p.Name, Local: p.Local, Exposure: p.Exposure}
}

// of returns the provider of a model that Choose returned.
func (m *Models) of(model Model) (*provider, error) {
	for _, p := range m.providers {
		if p.Name == model.Provider && slices.Contains(p.Models, model.Name) {
			return p, nil
		}
	}

	return nil, fmt.Errorf("the model %s/%s is not configured", model.Provider, model.Name)
}
