package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"hash/crc32"
	"math/big"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// A token consists of the prefix, 160 random bits and a checksum, the last two in base 62. A secret scanner can
// recognise it, and a mistyped token is refused without a database query.
const (
	tokenPrefix    = "quern_"
	tokenBytes     = 20
	randomDigits   = 27
	checksumDigits = 6
)

func formatToken(random []byte) string {
	body := tokenPrefix + base62(new(big.Int).SetBytes(random[:tokenBytes]), randomDigits)

	return body + checksum(body)
}

func checksum(body string) string {
	return base62(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(body)))), checksumDigits)
}

func base62(n *big.Int, digits int) string {
	text := n.Text(62)

	return strings.Repeat("0", digits-len(text)) + text
}

// hashToken returns the hash that is stored for a token, and whether the token is well-formed.
func hashToken(token string) (hash [sha256.Size]byte, wellFormed bool) {
	body := len(token) - checksumDigits
	if len(token) != len(tokenPrefix)+randomDigits+checksumDigits || checksum(token[:body]) != token[body:] {
		return hash, false
	}

	return sha256.Sum256([]byte(token)), true
}

// Tokens creates, lists and revokes API tokens.
type Tokens struct {
	DB              *postgres.DB
	Now             func() time.Time
	Secret          []byte // must be the same on every replica
	DefaultLifetime time.Duration
	MaxLifetime     time.Duration
}

// Token is an API token without its value.
type Token struct {
	ID         uuid.UUID
	Name       string
	Role       Role
	Restricted bool
	Targets    []Target
	CreatedAt  time.Time
	ExpiresAt  time.Time
	LastUsedAt time.Time // zero if never used

	parent  uuid.UUID
	hash    []byte
	revoked bool
}

// NewToken is a request to create a token. Zero values mean the defaults.
type NewToken struct {
	Name      string
	Role      Role
	ExpiresAt *time.Time
	Targets   Resolve // nil means not restricted
	Once      Once
}

// Resolve returns the targets that a token is restricted to. It runs in the transaction that creates the token.
type Resolve func(ctx context.Context, tx postgres.Tx) ([]Target, error)

// Create creates a token and returns it with its value, which is shown only here. A repeated call with the same Once
// returns the same token and value.
//
// Faults: ValidationFailed, Forbidden if the token would exceed or outlive the token that it is created with,
// Conflict.
func (s Tokens) Create(ctx context.Context, who Principal, want NewToken) (Token, string, error) {
	if err := mayManage(who); err != nil {
		return Token{}, "", err
	}

	var (
		now   = s.Now().UTC().Truncate(time.Millisecond)
		id    = uuid.Must(uuid.NewV7())
		token Token
		value string
	)

	err := s.DB.InTx(ctx, func(tx postgres.Tx) error {
		// Serialise changes of an account's tokens, so that no token is created with a token that is being revoked.
		if err := lockAccount(ctx, tx, who.Account); err != nil {
			return err
		}

		first, repeated, err := want.Once.ClaimTx(ctx, tx, who.Account, who, id, now)

		switch {
		case err != nil:
		case repeated:
			token, value, err = s.again(ctx, tx, who, first)
		default:
			token, value, err = s.createTx(ctx, tx, who, id, want, now)
		}

		return err
	})

	return token, value, err
}

func (s Tokens) createTx(ctx context.Context, tx postgres.Tx, who Principal, id uuid.UUID, want NewToken, now time.Time) (Token, string, error) {
	var targets []Target

	if want.Targets != nil {
		var err error
		if targets, err = want.Targets(ctx, tx); err != nil {
			return Token{}, "", err
		}
	}

	token, err := s.draft(who, id, want, targets, now)
	if err != nil {
		return Token{}, "", err
	}

	if token.parent != uuid.Nil {
		parent, err := selectToken(ctx, tx, who.Account, token.parent)
		if err != nil {
			return Token{}, "", err
		}

		if parent == nil || parent.revoked {
			return Token{}, "", unauthorized(fmt.Errorf("API token %s is revoked", token.parent))
		}
	}

	value := s.value(id, want.Once.Given())
	hash, _ := hashToken(value)
	token.hash = hash[:]

	if err := insertToken(ctx, tx, who.Account, token); err != nil {
		return Token{}, "", err
	}

	return token, value, audit.WriteTx(ctx, tx, who.Audit(who.Account, now, "token.create", tokenTarget(id)))
}

// draft applies the defaults and checks the rules.
func (s Tokens) draft(who Principal, id uuid.UUID, want NewToken, targets []Target, now time.Time) (Token, error) {
	token := Token{
		ID: id, Name: want.Name, Role: want.Role, Restricted: len(targets) > 0, Targets: targets, CreatedAt: now,
	}

	if token.Role == "" {
		token.Role = Editor
		if Editor.Exceeds(who.Ceiling()) {
			token.Role = who.Ceiling()
		}
	}

	if want.ExpiresAt != nil {
		token.ExpiresAt = want.ExpiresAt.UTC().Truncate(time.Millisecond)
	} else {
		token.ExpiresAt = now.Add(s.DefaultLifetime)
		if who.Token != nil && token.ExpiresAt.After(who.Token.ExpiresAt) {
			token.ExpiresAt = who.Token.ExpiresAt
		}
	}

	if who.Token != nil {
		token.parent = who.Token.ID
	}

	return token, s.check(who, token, now)
}

func (s Tokens) check(who Principal, token Token, now time.Time) error {
	switch {
	case !token.ExpiresAt.After(now):
		return fault.Invalid("expiresAt", "must be in the future")
	case token.ExpiresAt.After(now.Add(s.MaxLifetime)):
		return fault.Invalid("expiresAt", fmt.Sprintf("must be at most %.0f hours from now", s.MaxLifetime.Hours()))
	case token.Role.Exceeds(who.Ceiling()):
		return beyondRights("role", fmt.Sprintf("The token in use allows %s at most.", who.Ceiling()))
	case who.Token != nil && token.ExpiresAt.After(who.Token.ExpiresAt):
		return beyondRights("expiresAt", "A token cannot expire later than the token that creates it.")
	case token.Restricted && token.Role == Owner:
		return beyondRights("role", "A restricted token allows editor at most.")
	default:
		return nil
	}
}

// again returns the token that the first request with the same key created.
func (s Tokens) again(ctx context.Context, tx postgres.Tx, who Principal, id uuid.UUID) (Token, string, error) {
	token, err := selectToken(ctx, tx, who.Account, id)
	if err != nil {
		return Token{}, "", err
	}

	value := s.value(id, true)
	if hash, _ := hashToken(value); token == nil || subtle.ConstantTimeCompare(hash[:], token.hash) != 1 {
		return Token{}, "", fault.New(fault.Conflict, "This token was created with another QUERN_SECRET, so its value cannot be shown again. Revoke it and create a new one.")
	}

	list := []Token{*token}
	err = s.loadTargets(ctx, tx, who.Account, list)

	return list[0], value, err
}

// loadTargets sets the targets of restricted tokens.
func (s Tokens) loadTargets(ctx context.Context, q postgres.Querier, account uuid.UUID, list []Token) (err error) {
	for i, token := range list {
		if token.Restricted && err == nil {
			list[i].Targets, err = selectTargets(ctx, q, tokenKey{account, token.ID})
		}
	}

	return err
}

// value returns the value of a token. It derives the value of a token that is created with an idempotency key, so
// that a repeated request can show it again although only its hash is stored. Other values are random.
func (s Tokens) value(id uuid.UUID, derived bool) string {
	if !derived {
		random := make([]byte, tokenBytes)
		_, _ = rand.Read(random) // never fails

		return formatToken(random)
	}

	mac := hmac.New(sha256.New, s.Secret)
	mac.Write([]byte("api token"))
	mac.Write(id[:])

	return formatToken(mac.Sum(nil))
}

// List returns the account's tokens that are not revoked, newest first, starting after the given token. next is
// uuid.Nil at the end of the list.
func (s Tokens) List(ctx context.Context, who Principal, after uuid.UUID, limit int) (list []Token, next uuid.UUID, err error) {
	if err := mayManage(who); err != nil {
		return nil, uuid.Nil, err
	}

	err = s.DB.Do(ctx, func(q postgres.Querier) error {
		if list, err = selectTokens(ctx, q, who.Account, after, limit+1); err != nil {
			return err
		}

		return s.loadTargets(ctx, q, who.Account, list)
	})

	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}

	return list, next, err
}

// Get returns a token of the account.
//
// Faults: NotFound, also for a revoked token.
func (s Tokens) Get(ctx context.Context, who Principal, id uuid.UUID) (Token, error) {
	if err := mayManage(who); err != nil {
		return Token{}, err
	}

	list := make([]Token, 1)
	err := s.DB.Do(ctx, func(q postgres.Querier) error {
		found, err := selectToken(ctx, q, who.Account, id)
		if err != nil {
			return err
		}

		if found == nil || found.revoked {
			return fault.Absent()
		}

		list[0] = *found

		return s.loadTargets(ctx, q, who.Account, list)
	})

	return list[0], err
}

// Delete revokes a token and every token that was created with it.
//
// Faults: NotFound, Forbidden if the token in use allows less than the token to be revoked.
func (s Tokens) Delete(ctx context.Context, who Principal, id uuid.UUID) error {
	if err := mayManage(who); err != nil {
		return err
	}

	return s.DB.InTx(ctx, func(tx postgres.Tx) error {
		if err := lockAccount(ctx, tx, who.Account); err != nil {
			return err
		}

		token, err := selectToken(ctx, tx, who.Account, id)
		if err != nil {
			return err
		}

		if token == nil || token.revoked {
			return fault.Absent()
		}

		if token.Role.Exceeds(who.Ceiling()) {
			return beyondRights("role", fmt.Sprintf("The token in use allows %s at most.", who.Ceiling()))
		}

		return s.revokeTx(ctx, tx, who.Audit(who.Account, s.Now(), "token.revoke", audit.Target{}), id)
	})
}

// Revoke is Delete for operators, who give only the id.
func (s Tokens) Revoke(ctx context.Context, id uuid.UUID) error {
	return s.DB.InTx(ctx, func(tx postgres.Tx) error {
		account, err := selectTokenAccount(ctx, tx, id)
		if err != nil {
			return err
		}

		if account == uuid.Nil {
			return fault.New(fault.NotFound, fmt.Sprintf("There is no token %s.", id))
		}

		if err := lockAccount(ctx, tx, account); err != nil {
			return err
		}

		return s.revokeTx(ctx, tx, audit.Entry{
			Account: account, At: s.Now(), Actor: audit.Operator, Action: "token.revoke",
		}, id)
	})
}

func (s Tokens) revokeTx(ctx context.Context, tx postgres.Tx, entry audit.Entry, id uuid.UUID) error {
	revoked, err := updateRevoked(ctx, tx, entry.Account, id, entry.At)
	if err != nil {
		return err
	}

	for _, id := range revoked {
		entry.Target = tokenTarget(id)
		if err := audit.WriteTx(ctx, tx, entry); err != nil {
			return err
		}
	}

	return nil
}

func tokenTarget(id uuid.UUID) audit.Target { return audit.Target{Kind: "token", ID: id.String()} }

func mayManage(who Principal) error {
	if who.Token != nil && who.Token.Restricted {
		return fault.New(fault.Forbidden, "A restricted token cannot manage tokens.")
	}

	return nil
}

func beyondRights(field, message string) error {
	e := fault.New(fault.Forbidden, "The token in use does not allow this.")
	e.Subs = []fault.Sub{{Code: field, Message: message}}

	return e
}
