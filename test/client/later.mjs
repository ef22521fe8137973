// Preloaded into a process whose clock is to be ahead, by the days in DAYS_LATER.
const now = Date.now.bind(Date)
const ahead = Number(process.env.DAYS_LATER ?? 0) * 86_400_000
Date.now = () => now() + ahead
