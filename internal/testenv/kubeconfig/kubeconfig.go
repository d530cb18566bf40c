// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// Encode returns a kubeconfig for config, whose certificates or token must be inline.
func Encode(config *rest.Config) ([]byte, error) {
	const name = "belay"
	data, err := yaml.Marshal(clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []clientcmdv1.NamedCluster{{Name: name, Cluster: clientcmdv1.Cluster{
			Server: config.Host, CertificateAuthorityData: config.CAData,
		}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: name, AuthInfo: clientcmdv1.AuthInfo{
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		}}},
		Contexts: []clientcmdv1.NamedContext{{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: name}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return data, nil
}

// Write writes a kubeconfig for config to a file of mode 0600.
func Write(path string, config *rest.Config) error {
	data, err := Encode(config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}

// Decode returns the config that a kubeconfig describes: that of its only cluster and its only user.
func Decode(data []byte) (*rest.Config, error) {
	var c clientcmdv1.Config
	if err := yaml.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("decoding a kubeconfig: %w", err)
	}
	if len(c.Clusters) != 1 || len(c.AuthInfos) != 1 {
		return nil, fmt.Errorf("decoding a kubeconfig: it has %d clusters and %d users, want one of each", len(c.Clusters), len(c.AuthInfos))
	}
	cluster, user := c.Clusters[0].Cluster, c.AuthInfos[0].AuthInfo
	config := &rest.Config{
		Host: cluster.Server, BearerToken: user.Token,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: cluster.CertificateAuthorityData, CAFile: cluster.CertificateAuthority,
			CertData: user.ClientCertificateData, CertFile: user.ClientCertificate,
			KeyData: user.ClientKeyData, KeyFile: user.ClientKey,
		},
	}
	return config, nil
}

// Read returns the config that a kubeconfig file describes.
func Read(path string) (*rest.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a kubeconfig: %w", err)
	}
	return Decode(data)
}
