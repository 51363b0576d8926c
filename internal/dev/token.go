package dev

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// The header of a token contains its kind, so that a token of one kind is not accepted as another.
const (
	accessToken   = "at+jwt"
	identityToken = "JWT"
	refreshToken  = "refresh+jwt"
	sessionToken  = "session+jwt"
)

var errToken = errors.New("the token is not from this issuer, or has expired")

// signer signs and verifies tokens: JWTs signed with Ed25519.
type signer struct {
	key ed25519.PrivateKey
	now func() time.Time
}

func (s signer) public() ed25519.PublicKey {
	return ed25519.PublicKey(s.key[ed25519.SeedSize:]) // the layout of a private key in crypto/ed25519
}

// id returns the ID of the key. Another key has another ID, so that the service fetches it.
func (s signer) id() string {
	sum := sha256.Sum256(s.public())

	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

func (s signer) keySet() any {
	return map[string]any{"keys": []map[string]string{{
		"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": s.id(), "x": base64.RawURLEncoding.EncodeToString(s.public()),
	}}}
}

// claims are the claims of a token; empty ones are omitted.
type claims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience string   `json:"aud"`
	IssuedAt int64    `json:"iat"`
	Expires  int64    `json:"exp"`
	Client   string   `json:"client_id,omitempty"`
	Nonce    string   `json:"nonce,omitempty"`
	Username string   `json:"preferred_username,omitempty"`
	Name     string   `json:"name,omitempty"`
	Email    string   `json:"email,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

func (s signer) sign(kind string, body claims, life time.Duration) string {
	body.IssuedAt, body.Expires = s.now().Unix(), s.now().Add(life).Unix()
	signed := encode(map[string]string{"alg": "EdDSA", "typ": kind, "kid": s.id()}) + "." + encode(body)

	return signed + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(s.key, []byte(signed)))
}

func encode(part any) string {
	content, _ := json.Marshal(part) //nolint:errchkjson // strings and numbers alone

	return base64.RawURLEncoding.EncodeToString(content)
}

// verify returns the claims of a token of this kind that this issuer signed.
func (s signer) verify(kind, token string) (body claims, err error) {
	last := strings.LastIndexByte(token, '.')
	header, payload, _ := strings.Cut(token[:max(last, 0)], ".")

	signature, err := base64.RawURLEncoding.DecodeString(token[last+1:])
	if err != nil || !ed25519.Verify(s.public(), []byte(token[:max(last, 0)]), signature) {
		return body, errToken
	}

	var head struct {
		Kind string `json:"typ"`
	}

	if decode(header, &head) != nil || decode(payload, &body) != nil || head.Kind != kind || s.now().Unix() >= body.Expires {
		return claims{}, errToken
	}

	return body, nil
}

func decode(part string, into any) error {
	content, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}

	return json.Unmarshal(content, into)
}
