package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Config configures the issuer and the rules for accounts.
type Config struct {
	DB            *postgres.DB
	Log           *slog.Logger
	Now           func() time.Time
	Client        *http.Client // used only for the issuer; has a timeout
	Issuer        string
	Audiences     []string
	UsernameClaim string
	GroupsClaim   string
	GroupsMaxAge  time.Duration
	OperatorGroup string // group of the issuer whose members are operators; empty means that nobody is
	Algorithms    []string
	ClockSkew     time.Duration
	KeysRefresh   time.Duration
	KeysMaxAge    time.Duration
}

// Authenticator turns bearer tokens into principals.
type Authenticator struct {
	db           *postgres.DB
	now          func() time.Time
	verifier     *verifier
	groupsMaxAge time.Duration
	operators    string

	// Only the directory is cached, not the accounts: the account of an identity or of a token hash does not change,
	// except when an identity is released. Whether the account and the token are still valid is read from the
	// account's rows at every request.
	identities *lru.Cache[identityKey, uuid.UUID]
	tokens     *lru.Cache[[32]byte, tokenKey]
}

type (
	identityKey struct{ issuer, subject string }
	tokenKey    struct{ account, token uuid.UUID }
)

const directoryCacheSize = 100_000

// New returns an Authenticator. It does not wait for the issuer.
func New(c Config) (*Authenticator, error) {
	if c.Issuer == "" || len(c.Audiences) == 0 {
		return nil, errors.New("an issuer and an audience are required: without them any token would be accepted")
	}

	asymmetric := []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
	algorithms := make([]jose.SignatureAlgorithm, 0, len(c.Algorithms))

	for _, name := range c.Algorithms {
		if !slices.Contains(asymmetric, name) {
			return nil, fmt.Errorf("the signature algorithm %q is not accepted, use one of: %s", name, strings.Join(asymmetric, ", "))
		}

		algorithms = append(algorithms, jose.SignatureAlgorithm(name))
	}

	identities, err := lru.New[identityKey, uuid.UUID](directoryCacheSize)
	if err != nil {
		return nil, err
	}

	tokens, err := lru.New[[32]byte, tokenKey](directoryCacheSize)
	if err != nil {
		return nil, err
	}

	verified, err := lru.New[[sha256.Size]byte, verified](verifiedCacheSize)
	if err != nil {
		return nil, err
	}

	return &Authenticator{
		db: c.DB, now: c.Now, groupsMaxAge: c.GroupsMaxAge, operators: c.OperatorGroup, identities: identities, tokens: tokens,
		verifier: &verifier{
			verified: verified, audiences: c.Audiences, usernameClaim: c.UsernameClaim, groupsClaim: c.GroupsClaim, clockSkew: c.ClockSkew, now: c.Now,
			keys: &keySet{
				issuer: c.Issuer, algorithms: algorithms, client: c.Client, refreshEvery: c.KeysRefresh, maxAge: c.KeysMaxAge, clockSkew: c.ClockSkew,
				now: c.Now, log: c.Log, limiter: rate.NewLimiter(rate.Every(unknownKeyPause), unknownKeyBurst),
			},
		},
	}, nil
}

// Run keeps the issuer's keys current until ctx ends.
func (a *Authenticator) Run(ctx context.Context) { a.verifier.keys.run(ctx) }

// IssuerAnswers reports whether the last attempt to read the issuer's keys succeeded.
func (a *Authenticator) IssuerAnswers() bool {
	return a.verifier.keys.current.Load() != nil && !a.verifier.keys.failed.Load()
}

// AuthorizationURL returns the URL where people sign in. It returns false until the issuer's discovery document has
// been read.
func (a *Authenticator) AuthorizationURL() (string, bool) {
	current := a.verifier.keys.current.Load()
	if current == nil {
		return "", false
	}

	return current.authorizationURL, true
}

// Authenticate returns the principal of a bearer token.
//
// Faults: Unauthorized, Unavailable, Forbidden for an identity that cannot have its username.
func (a *Authenticator) Authenticate(ctx context.Context, bearer string, origin Origin) (Principal, error) {
	var (
		who Principal
		err error
	)

	if strings.HasPrefix(bearer, tokenPrefix) {
		who, err = a.byAPIToken(ctx, bearer)
	} else {
		who, err = a.byAccessToken(ctx, bearer, origin)
	}

	who.Origin = origin
	who.Operator = a.operators != "" && slices.Contains(who.Groups, a.operators) && who.Ceiling() == Owner

	return who, err
}

func (a *Authenticator) byAccessToken(ctx context.Context, bearer string, origin Origin) (Principal, error) {
	id, err := a.verifier.verify(ctx, bearer)
	if err != nil {
		return Principal{}, tokenFault(err)
	}

	account, err := a.accountOf(ctx, id, origin)
	if err != nil {
		return Principal{}, err
	}

	return Principal{Account: account.id, Username: account.username, Name: id.name, Email: id.email, Groups: id.groups}, nil
}

// accountOf returns the account of an identity. It creates the account at the first request, and keeps the name, the
// email address and the groups current.
func (a *Authenticator) accountOf(ctx context.Context, id identity, origin Origin) (account, error) {
	key := identityKey{id.issuer, id.subject}
	accountID, remembered := a.identities.Get(key)

	found, err := a.loadAccount(ctx, id, accountID)
	if remembered && err == nil && (found == nil || !found.belongsTo(id)) {
		// An operator has released the identity since it was cached.
		a.identities.Remove(key)
		found, err = a.loadAccount(ctx, id, uuid.Nil)
	}

	if err == nil && found == nil {
		found, err = a.createAccount(ctx, id, origin)
	}

	switch {
	case err != nil:
		return account{}, err
	case found.disabled:
		return account{}, unauthorized(errors.New("the account is disabled"))
	}

	a.identities.Add(key, found.id)

	if found.outdated(id, a.groupsMaxAge/4) {
		err = a.db.Do(ctx, func(q postgres.Querier) error { return updateSeen(ctx, q, found.id, id) })
	}

	return *found, err
}

// loadAccount returns nil if the account does not exist.
func (a *Authenticator) loadAccount(ctx context.Context, id identity, accountID uuid.UUID) (*account, error) {
	var found *account

	err := a.db.Do(ctx, func(q postgres.Querier) error {
		if accountID == uuid.Nil {
			var err error
			if accountID, err = selectIdentity(ctx, q, id.issuer, id.subject); err != nil || accountID == uuid.Nil {
				return err
			}
		}

		var err error
		found, err = selectAccount(ctx, q, accountID)

		return err
	})

	return found, err
}

func (a *Authenticator) byAPIToken(ctx context.Context, bearer string) (Principal, error) {
	hash, wellFormed := hashToken(bearer)
	if !wellFormed {
		return Principal{}, unauthorized(errors.New("the API token is malformed"))
	}

	var found *tokenBearer

	err := a.db.Do(ctx, func(q postgres.Querier) error {
		key, remembered := a.tokens.Get(hash)
		if !remembered {
			var err error
			if key, err = selectTokenKey(ctx, q, hash); err != nil || key.token == uuid.Nil {
				return err
			}

			a.tokens.Add(hash, key)
		}

		var err error
		if found, err = selectTokenBearer(ctx, q, key); err != nil || found == nil {
			return err
		}

		if found.grant.Restricted {
			if found.grant.Targets, err = selectTargets(ctx, q, key); err != nil {
				return err
			}
		}

		return a.noteUse(ctx, q, key, found)
	})
	if err != nil {
		return Principal{}, err
	}

	return found.principal(a.now(), a.groupsMaxAge)
}

// principal returns the principal of a token at a given time. A nil receiver means that the token does not exist.
func (found *tokenBearer) principal(now time.Time, groupsMaxAge time.Duration) (Principal, error) {
	switch {
	case found == nil:
		return Principal{}, unauthorized(errors.New("no such API token"))
	case found.revoked:
		return Principal{}, unauthorized(errors.New("the API token is revoked"))
	case !now.Before(found.grant.ExpiresAt):
		return Principal{}, unauthorized(errors.New("the API token has expired"))
	case found.owner.disabled:
		return Principal{}, unauthorized(errors.New("the account is disabled"))
	}

	groups := found.owner.groups
	if now.Sub(found.owner.seenAt) > groupsMaxAge {
		groups = []string{}
	}

	return Principal{
		Account: found.owner.id, Username: found.owner.username, Name: found.owner.name, Email: found.owner.email,
		Groups: groups, Token: &found.grant,
	}, nil
}

// usePrecision is the precision of last_used_at. It avoids a write at every request.
const usePrecision = 5 * time.Minute

func (a *Authenticator) noteUse(ctx context.Context, q postgres.Querier, key tokenKey, found *tokenBearer) error {
	now := a.now()
	if found.revoked || !now.Before(found.grant.ExpiresAt) || found.owner.disabled || now.Sub(found.lastUsedAt) < usePrecision {
		return nil
	}

	return updateLastUsed(ctx, q, key, now)
}

func tokenFault(err error) error {
	if errors.Is(err, errKeysUnknown) {
		unavailable := fault.Wrap(err, fault.Unavailable, "The token cannot be checked now, because the keys of the identity provider could not be read. Try again shortly.")
		unavailable.RetryAfter = unknownKeyPause

		return unavailable
	}

	return unauthorized(err)
}

// unauthorized returns the same message for every reason why a token is not accepted. The reason is only logged.
func unauthorized(reason error) error {
	return fault.Wrap(reason, fault.Unauthorized, "The token is not valid: it is unknown, expired or revoked. Replace it: sign in again (quern login), or use an API token that is still valid.")
}

// Missing returns the fault of a request without a token.
func Missing() error {
	return fault.Wrap(errors.New("no token"), fault.Unauthorized, "The request has no token. Send the header Authorization: Bearer TOKEN. quern login signs you in, and quern token create makes an API token.")
}
