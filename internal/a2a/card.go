package a2a

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"
)

const (
	cardPath = "/.well-known/agent-card.json"
	cardKept = "public, max-age=300"

	// metadataURI names the extension that says what the metadata of a message may hold.
	metadataURI = "https://quern.dev/a2a/metadata/v1"

	plainText = "text/plain"
	markdown  = "text/markdown"
	jsonType  = "application/json"

	shownNamespaces = 100
)

// profile is what distinguishes an agent.
type profile struct {
	name        string
	description string
	skill       protocol.AgentSkill
	examples    []string
	output      []string
	order       func(*telling) order
	talk        talk
}

func profiles() []profile {
	const preview = " In preview: the surface may change."

	return []profile{
		{
			name:        "nl2ql",
			description: "Turns a question about the caller's datasets into one query, and gives the query with its rows." + preview,
			skill: protocol.AgentSkill{
				ID: "nl2ql", Name: "Question to query", Tags: []string{"query", "nl2ql"},
				Description: "Writes a read-only query for a question in plain language, runs it and gives its rows.",
			},
			examples: []string{"How many orders came from Vienna last month?", "List the ten largest invoices."},
			output:   []string{plainText, jsonType},
			order:    func(t *telling) order { return &queryOrder{telling: t} },
			talk:     oneQuestion{},
		},
		{
			name:        "assistant",
			description: "Answers questions about the caller's datasets in words, with the queries and the rows behind the answer." + preview,
			skill: protocol.AgentSkill{
				ID: "assistant", Name: "Assistant", Tags: []string{"assistant", "rag", "query"},
				Description: "Plans the steps to an answer, queries the data for each, and answers in words that the rows bear out.",
			},
			examples: []string{"Which region grew most this year, and why?", "Compare this quarter's returns with the last one's."},
			output:   []string{markdown, plainText, jsonType},
			order:    func(t *telling) order { return &answerOrder{telling: t} },
			talk:     oneQuestion{},
		},
	}
}

// card is a card with the shapes of proto3-JSON where the library has others.
type card struct {
	protocol.AgentCard

	Capabilities         capabilities  `json:"capabilities"`
	SecurityRequirements []requirement `json:"securityRequirements"`
}

type capabilities struct {
	Streaming         bool                      `json:"streaming"`
	PushNotifications bool                      `json:"pushNotifications"`
	ExtendedAgentCard bool                      `json:"extendedAgentCard"`
	Extensions        []protocol.AgentExtension `json:"extensions"`
}

type requirement struct {
	Schemes map[string]scopes `json:"schemes"`
}

type scopes struct {
	List []string `json:"list"`
}

const scheme = "bearer"

func (a *Agents) cardOf(p profile) card {
	return card{
		AgentCard: protocol.AgentCard{
			Name: p.name, Description: p.description, Version: a.Version,
			SupportedInterfaces: []*protocol.AgentInterface{protocol.NewAgentInterface(a.entryOf(p).URL, protocol.TransportProtocolJSONRPC)},
			DefaultInputModes:   []string{plainText},
			DefaultOutputModes:  p.output,
			SecuritySchemes:     protocol.NamedSecuritySchemes{scheme: protocol.HTTPAuthSecurityScheme{Scheme: "Bearer", BearerFormat: "JWT"}},
			Skills:              []protocol.AgentSkill{p.skill},
		},
		Capabilities: capabilities{Streaming: true, ExtendedAgentCard: true, Extensions: []protocol.AgentExtension{{
			URI: metadataURI, Description: "What the metadata of a message may hold.", Params: metadataKeys(),
		}}},
		SecurityRequirements: []requirement{{Schemes: map[string]scopes{scheme: {List: []string{}}}}},
	}
}

func metadataKeys() map[string]any {
	key := func(kind, description string, required bool) map[string]any {
		return map[string]any{"type": kind, "description": description, "required": required}
	}

	return map[string]any{
		"namespace": key("string", "What the question is about: name for one of the caller's own, owner/name or self/name. A token that reaches only one supplies it.", true),
		"datasets":  key("array of strings", "Limits the question to these datasets, named as in SQL.", false),
		"model":     key("string", "The model that is to answer.", false),
		"provider":  key("string", "Who provides the model.", false),
		"asOf":      key("string", "A time: today for relative dates. Now if absent.", false),
		"timeZone":  key("string", "Name of a time zone. UTC if absent.", false),
	}
}

// card serves the card to everybody. It is the same until the service is replaced.
func (a *Agents) card(w http.ResponseWriter, r *http.Request, p profile) {
	text, err := json.Marshal(a.cardOf(p))
	if err != nil {
		a.Fail(w, r, err)

		return
	}

	r.Header.Del("Range")
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Cache-Control", cardKept)
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(text)))
	http.ServeContent(w, r, "", a.began, bytes.NewReader(text))
}

// extended is the card for a caller: with examples, and what can be asked about.
func (h handler) extended(ctx context.Context) (card, error) {
	names, err := h.namespaces(ctx)
	if err != nil {
		return card{}, err
	}

	full := h.cardOf(h.agent)
	full.Skills[0].Examples = h.agent.examples
	full.Capabilities.Extensions[0].Params["namespaces"] = names

	return full, nil
}

// namespaces are the caller's own.
func (h handler) namespaces(ctx context.Context) ([]string, error) {
	found, _, err := h.Catalog.Namespaces(ctx, h.who, h.who.Username, uuid.Nil, shownNamespaces)
	names := make([]string, len(found))

	for i, n := range found {
		names[i] = n.Owner + "/" + n.Name
	}

	return names, err
}
