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

// Exposure is how much of people's data a model may see. A higher one includes the lower.
type Exposure int

const (
	ExposeSchema Exposure = iota + 1 // names, types and definitions
	ExposeValues                     // also values of profiles and of the value index
	ExposeRows                       // also rows of results
)

// ParseExposure reads one of schema, values and rows.
func ParseExposure(text string) (Exposure, error) {
	if i := slices.Index([]string{"schema", "values", "rows"}, text); i >= 0 {
		return ExposeSchema + Exposure(i), nil
	}

	return 0, errors.New("an exposure is one of: schema, values, rows")
}

// Kind is what a provider speaks.
type Kind string

const (
	OpenAI    Kind = "openai"
	Anthropic Kind = "anthropic"
)

// Provider is one place that answers.
type Provider struct {
	Name        string
	Kind        Kind
	URL         string // of the API; the vendor's own if empty
	Key         string
	Local       bool          // it runs where the data may be
	Exposure    Exposure      // of one that is not local
	Models      []string      // that may be asked for
	Concurrency int           // calls at once from this process; more wait
	Timeout     time.Duration // of one attempt
	Client      *http.Client  // its timeout is not used
}

// Config is what Models needs.
type Config struct {
	DB        *postgres.DB
	Providers []Provider // the first model of the first one is the default
	// Settle counts tokens on the account's usage.
	Settle func(ctx context.Context, tx postgres.Tx, account uuid.UUID, tokens int64) error
	// Admit refuses a call of an account that has none left. Nil: nobody is refused.
	Admit   func(ctx context.Context, tx postgres.Tx, account uuid.UUID) error
	Capture bool // texts go into spans
	Log     *slog.Logger
	Now     func() time.Time
}

// Models are the models that the operator configured.
type Models struct {
	config    Config
	providers []*provider
}

// provider is a Provider at work. It has no key: only the client that it speaks through does.
type provider struct {
	Provider

	wire    wire
	places  chan struct{}
	breaker breaker
}

// wire is what a kind of provider speaks.
type wire interface {
	// send makes one attempt, streamed if tell is not nil. What came is returned with an error too.
	send(ctx context.Context, request Request, tell func(text string) error) (Response, error)
}

// Model is one of them.
type Model struct {
	Name     string
	Provider string
	Local    bool
	Exposure Exposure // ExposeRows if it is local
}

// New returns Models. No provider need answer yet.
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
			return nil, fmt.Errorf("%s: it must be said what a provider that is not local may see", given.Name)
		case given.Concurrency <= 0 || given.Timeout <= 0 || given.Client == nil:
			return nil, fmt.Errorf("%s: it needs a client, a timeout and a number of calls at once", given.Name)
		}

		p := &provider{Provider: given, places: make(chan struct{}, given.Concurrency)}

		switch given.Kind {
		case OpenAI:
			p.wire = newOpenAI(given)
		case Anthropic:
			p.wire = newAnthropic(given)
		default:
			return nil, fmt.Errorf("%s: its kind is neither openai nor anthropic", given.Name)
		}

		p.Key = ""
		m.providers = append(m.providers, p)
	}

	m.config.Providers = nil

	return m, nil
}

// Configured tells whether there is any model.
func (m *Models) Configured() bool { return len(m.providers) > 0 }

// Choose finds a model by its name, its provider, both or neither, which is the default.
//
// Faults: ValidationFailed, Unavailable if no model is configured.
func (m *Models) Choose(model, from string) (Model, error) {
	if !m.Configured() {
		return Model{}, fault.New(fault.Unavailable, "No model is configured. The operator has to set QUERN_MODELS.")
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
		return Model{}, fault.Invalid("provider", "is none of: "+strings.Join(m.names(func(p *provider) []string { return []string{p.Name} }), ", "))
	}

	return Model{}, fault.Invalid("model", "is none of: "+strings.Join(m.names(func(p *provider) []string {
		if from != "" && from != p.Name {
			return nil
		}

		return p.Models
	}), ", "))
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

// of finds the provider of a model that Choose gave.
func (m *Models) of(model Model) (*provider, error) {
	for _, p := range m.providers {
		if p.Name == model.Provider && slices.Contains(p.Models, model.Name) {
			return p, nil
		}
	}

	return nil, fmt.Errorf("the model %s/%s is not configured", model.Provider, model.Name)
}
