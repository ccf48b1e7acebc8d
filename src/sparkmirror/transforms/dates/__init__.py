"""Java's dates as text: SimpleDateFormat on Java's Gregorian calendar, with English names."""
