package trino

const sqlCheck = `SELECT 1`
