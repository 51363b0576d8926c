package llm

import (
	"context"
	"log/slog"
	"net/http"
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
	Client      *http.Client  // without a timeout of its own
}

// Config is what Models needs.
type Config struct {
	DB        *postgres.DB
	Providers []Provider // the first model of the first one is the default
	Settle    func(ctx context.Context, tx postgres.Tx, account uuid.UUID, tokens int64) error
	Capture   bool // texts go into spans
	Log       *slog.Logger
	Now       func() time.Time
}

// Models are the models that the operator configured.
type Models struct{ Config }

// Model is one of them.
type Model struct {
	Name     string
	Provider string
	Local    bool
	Exposure Exposure // ExposeRows if it is local
}

// New returns Models. No provider need answer yet.
func New(c Config) (*Models, error) { return &Models{Config: c}, nil }

// Configured tells whether there is any model.
func (m *Models) Configured() bool { return len(m.Providers) > 0 }

// Choose finds a model by its name, its provider, both or neither, which is the default.
//
// Faults: ValidationFailed, Unavailable if no model is configured.
func (m *Models) Choose(_, _ string) (Model, error) {
	return Model{}, fault.New(fault.Unavailable, "No model is configured.")
}
