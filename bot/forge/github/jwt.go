package github

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"time"
)

// A JWT lives for ten minutes at most, of which it is dated one back, as
// GitHub advises, for clocks that differ.
const (
	jwtBack = time.Minute
	jwtLife = 9 * time.Minute
)

// errNoKey says nothing of the key.
var errNoKey = errors.New("the GitHub App's private key is no RSA key in PEM")

// signJWT makes a JSON Web Token by RS256 (RFC 7515, RFC 7519) in which an app
// names itself. GitHub hands keys out in PKCS#1; PKCS#8 is read too.
func signJWT(issuer string, keyPEM []byte, now time.Time) (string, error) {
	key, err := parseKey(keyPEM)
	if err != nil {
		return "", err
	}
	header, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT"})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": issuer, "iat": now.Add(-jwtBack).Unix(), "exp": now.Add(jwtLife).Unix(),
	})
	if err != nil {
		return "", err
	}
	b64 := base64.RawURLEncoding
	text := b64.EncodeToString(header) + "." + b64.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", errors.New("the GitHub App's private key cannot sign")
	}
	return text + "." + b64.EncodeToString(sig), nil
}

func parseKey(keyPEM []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errNoKey
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errNoKey
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errNoKey
	}
	return key, nil
}
