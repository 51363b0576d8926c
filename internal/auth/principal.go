package auth

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/fault"
)

// Role is what a caller may do: a viewer reads, an editor also changes, an owner also shares and deletes.
type Role string

const (
	Viewer Role = "viewer"
	Editor Role = "editor"
	Owner  Role = "owner"
)

// Exceeds reports whether r allows more than other.
func (r Role) Exceeds(other Role) bool {
	order := []Role{Viewer, Editor, Owner}

	return slices.Index(order, r) > slices.Index(order, other)
}

// Principal is the caller of one request.
type Principal struct {
	Account  uuid.UUID
	Username string
	Name     string
	Email    string
	Groups   []string
	Token    *Grant // the API token that was used; nil for a person who signed in
	Operator bool   // may see and limit all users, but none of their data
	Origin   Origin
}

// Grant is what an API token allows.
type Grant struct {
	ID         uuid.UUID
	Role       Role
	ExpiresAt  time.Time
	Restricted bool
	Targets    []Target // what a restricted token may reach
}

// Target is a namespace or dataset, by id.
type Target struct {
	Kind    string
	Account uuid.UUID
	ID      uuid.UUID
}

// Origin is the origin of a request, for the audit.
type Origin struct {
	RequestID string
	Address   string
}

// Subject is a party that a grant can name.
type Subject struct {
	Kind string
	ID   string
}

// The kinds of subjects. A name means the account that signs in with that username. It makes it possible to share
// with a person who has not signed in yet.
const (
	SubjectAccount = "account"
	SubjectGroup   = "group"
	SubjectName    = "name"
)

// Subjects returns every subject whose grants apply to the caller.
func (p Principal) Subjects() []Subject {
	subjects := []Subject{{Kind: SubjectAccount, ID: p.Account.String()}, {Kind: SubjectName, ID: p.Username}}
	for _, group := range p.Groups {
		subjects = append(subjects, Subject{Kind: SubjectGroup, ID: group})
	}

	return subjects
}

// NameOf returns the username that a request means: Self is the caller, and usernames are lower case.
func (p Principal) NameOf(username string) string {
	if strings.EqualFold(username, Self) {
		return p.Username
	}

	return strings.ToLower(username)
}

// Administers reports whether the caller may do what only the owner of the account may do.
func (p Principal) Administers(account uuid.UUID) bool {
	return p.Account == account && p.Ceiling() == Owner
}

// RequireOperator returns Forbidden unless the caller is an operator.
func (p Principal) RequireOperator() error {
	if !p.Operator {
		return fault.New(fault.Forbidden, "Only operators of this service may do this.")
	}

	return nil
}

// ByCommand is who runs a command on the database, for the audit.
func ByCommand() Principal { return Principal{Username: audit.Operator} }

// Ceiling returns the highest role that the caller's credential allows, whatever was granted.
func (p Principal) Ceiling() Role {
	switch {
	case p.Token == nil:
		return Owner
	case p.Token.Restricted && p.Token.Role == Owner:
		return Editor
	default:
		return p.Token.Role
	}
}

// RequireEditor returns Forbidden if the token of the caller may only read.
func (p Principal) RequireEditor() error {
	if Editor.Exceeds(p.Ceiling()) {
		return fault.New(fault.Forbidden, "This needs a token with the role editor.")
	}

	return nil
}

// Credential identifies the caller for repeated requests: a person, or one API token of that person. A token with
// fewer rights must not receive the response for a token with more rights.
func (p Principal) Credential() uuid.UUID {
	if p.Token != nil {
		return p.Token.ID
	}

	return p.Account
}

// Audit returns an audit entry about an action of the caller on an account.
func (p Principal) Audit(account uuid.UUID, at time.Time, action string, target audit.Target) audit.Entry {
	entry := audit.Entry{
		Account: account, At: at, ActorID: p.Account, Actor: p.Username,
		Address: p.Origin.Address, RequestID: p.Origin.RequestID, Action: action, Target: target,
	}
	if p.Token != nil {
		entry.Token = p.Token.ID
	}

	return entry
}
