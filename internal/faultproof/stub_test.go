package faultproof_test
func writeRole() error { return nil }
func openRole() error { return nil }
