// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/belayproject/belay/configsync/kubelet"
	"github.com/belayproject/belay/configsync/signed"
	"github.com/belayproject/belay/examples/internal/agent/settings"
)

// signature is what the sign sub-command is told.
type signature struct {
	privateKey, id, key string
	own                 settings.Parts
}

// Sign prints a ConfigMap with a signature of its content.
func Sign(own settings.Parts) *cobra.Command {
	s := signature{own: own}
	c := &cobra.Command{
		Use:   "sign FILE --private-key KEY.pem",
		Short: "Print a ConfigMap of agent configmap with a signature, for nodes that ask for one with --trusted-keys",
		Long: "Print a ConfigMap of agent configmap with a signature, for nodes that ask for one with --trusted-keys.\n\n" +
			"What is signed is the content, limits of the trial included. Signatures that are there stay. A name that carries the digest of the " +
			"content gets the new one.",
		Args: one("the file with the ConfigMap"),
		RunE: func(c *cobra.Command, args []string) error {
			cm, err := s.sign(c.Context(), args[0])
			if err != nil {
				return err
			}
			return printed(c.OutOrStdout(), cm, s.key)
		},
	}
	f := c.Flags()
	f.StringVar(&s.privateKey, "private-key", "", "PEM file with an Ed25519 private key, as openssl genpkey -algorithm ed25519 writes it")
	f.StringVar(&s.id, "key-id", "", "name of the key as nodes know it; empty means the name of the file without .pem")
	f.StringVar(&s.key, "key", kubelet.Key, "entry of the ConfigMap that holds the config")
	return c
}

// sign makes the ConfigMap. What nodes would refuse is not signed.
func (s *signature) sign(ctx context.Context, path string) (*corev1.ConfigMap, error) {
	if s.privateKey == "" {
		return nil, &settings.FlagError{Flag: "private-key", Want: "must be a file with an Ed25519 private key, such as release.pem"}
	}
	pem, err := readFile(s.privateKey)
	if err != nil {
		return nil, err
	}
	private, err := signed.ParsePrivateKey(pem)
	if err != nil {
		return nil, &settings.FlagError{Flag: "private-key", Value: s.privateKey, Want: err.Error()}
	}
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	cm, err := configMapOf(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	l := settings.Defaults()
	l.Key, l.Own = s.key, s.own
	if _, err := judge(ctx, l, object(cm)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	id := s.id
	if id == "" {
		id = strings.TrimSuffix(filepath.Base(s.privateKey), ".pem")
	}
	line, err := signed.Sign(id, private, cm.Data)
	if err != nil {
		return nil, err
	}
	name, named := strings.CutSuffix(cm.Name, digestSuffix(cm))
	cm.Data[signed.Entry] = joined(cm.Data[signed.Entry], line)
	if named {
		cm.Name = name + digestSuffix(cm)
	}
	return cm, nil
}

// configMapOf reads a ConfigMap whose content is all that a node sees.
func configMapOf(text []byte) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	switch err := yaml.UnmarshalStrict(text, cm); {
	case err != nil:
		return nil, errors.New("must be a ConfigMap in YAML or JSON")
	case cm.Kind != "ConfigMap" || cm.APIVersion != "v1":
		return nil, errors.New("must be a v1 ConfigMap, as agent configmap prints it")
	case len(cm.BinaryData) > 0:
		return nil, errors.New("field binaryData must be empty: no node reads it, so it is not signed")
	}
	return cm, nil
}

// joined adds a line.
func joined(lines, line string) string {
	if lines != "" && !strings.HasSuffix(lines, "\n") {
		lines += "\n"
	}
	return lines + line + "\n"
}
